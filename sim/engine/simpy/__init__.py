"""The reference engine, on SimPy. Read it first and extend it here, starting with `engine`."""
