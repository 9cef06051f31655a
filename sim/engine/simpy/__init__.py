"""The reference engine, on SimPy's environment: read it first, extend it here."""
