"""The part of CRUSH's logarithm table that no formula gives.

Straw2 needs log2 in fixed point, and every client and OSD must get the same bits, so the table Ceph was
released with is part of the algorithm, its defects included. Where the second table of that logarithm
should hold floor(2**48 * log2(1 + k / 2**15)), it holds (checked against the table in Ceph 16.2.15's
libceph-common, all 256 entries):

- that value for k = 0 and 1,
- that value plus `USUAL_EXCESS` for the other entries, as if a constant had leaked into its making,
- except at the 42 places below, which carry an excess of their own (zero: the entry is right).

The effect on placement is nil to the eye (the excess is 2e-5 of one octave), but not to the bit.
"""

USUAL_EXCESS = 0x147700000
FIRST_WITH_EXCESS = 2

EXCESS_AT = {
    56: 5349423536, 127: 978272901, 134: 3588789669, 181: 4007963589, 184: 5423282367, 188: 2201924427,
    193: 3829329171, 198: 2511158322, 199: 2670353280, 200: 3807665765, 203: 0, 207: 5045407031,
    210: 4635559696, 212: 3670382108, 216: 0, 222: 0, 225: 3209098745, 227: 1514328394,
    228: 2662093655, 229: 561838844, 231: 3537203772, 233: 0, 235: 4861921003, 236: 5281046906,
    237: 0, 238: 0, 239: 0, 240: 2650193885, 241: 4203558265, 243: 0, 244: 0, 245: 0, 246: 0,
    247: 362109528, 248: 0, 249: 0, 250: 0, 251: 0, 252: 0, 253: 0, 254: 0, 255: 0,
}  # fmt: skip
