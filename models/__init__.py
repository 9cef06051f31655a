"""Components of a cluster: frozen dataclasses of measured numbers, plus pure functions.

Every number carries its provenance (`provenance`). Read `ssd` for a small model, `coding.protocol` for
redundancy schemes and `placement` for CRUSH. Models import nothing else of stripesim.
"""
