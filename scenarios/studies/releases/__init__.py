"""Counts measured on Ceph 14.2.21, 18.2.7 and 20.2.4, compared row by row with the simulated releases."""
