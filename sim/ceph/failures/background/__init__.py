"""Background work of a cluster, as streams of operations for the engine.

Start with `streams`, which connects recovery, scrubs and the notes that members write as they peer.
`recovery` decides which PG rebuilds which object and when, within `reservations`. `scrubs` read and compare
shards. `operations` plans each operation as templates and bindings.
"""
