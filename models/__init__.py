"""Models of cluster components: frozen dataclasses of measured numbers, and pure functions.

Every number carries its provenance (`provenance`). Read `ssd` first as an example of a small model, then
`coding.protocol` for redundancy schemes and `placement` for CRUSH. Models import no other stripesim package.
"""
