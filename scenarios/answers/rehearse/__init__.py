"""Rehearse planned changes: data movement, duration, OSD fill, and impact on clients.

Start with `rehearse`. `exact_movement` computes movement from CRUSH, and `samples` simulates its pace.
"""
