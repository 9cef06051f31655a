"""Background work: what a cluster does beside clients, as streams of operations for the engine.

Start with `streams`, which has all three: `recovery` decides which PG rebuilds which object when, within
`reservations`; `notes` are what members write as they peer; `scrubs` read and compare. `operations` plans
each operation as templates and bindings.
"""
