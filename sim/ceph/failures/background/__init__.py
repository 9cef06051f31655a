"""Background work of a cluster, as streams of operations for the engine.

Start with `streams`, which connects all of them. `recovery` decides which PG rebuilds which object and when,
within `reservations`. `scrubs` read and compare shards. `feed` is the form of every stream, and has the notes
that members write as they peer. `operations` plans each operation as templates and bindings.
"""
