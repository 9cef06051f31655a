"""Rehearsal of planned changes: movement, duration, fill of OSDs, and effects on clients.

Start with `rehearse`. `exact_movement` needs no simulation, `samples` simulates the pace.
"""
