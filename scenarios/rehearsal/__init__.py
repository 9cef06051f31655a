"""Planned changes rehearsed: what moves, how long it takes, how full OSDs become, what clients feel.

Start with `rehearse`. `exact_movement` needs no simulation; `samples` simulates the pace.
"""
