"""Walks of a cluster through time: drives fail, are rebuilt, and data is lost or not.

Start with `groups`. `pool` is the walk over declustered placement, `history` one over many years with bursts.
"""
