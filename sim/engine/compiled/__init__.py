"""The compiled engine, in Numba: equal to the SimPy engine to the nanosecond."""
