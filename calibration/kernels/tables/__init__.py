"""Measured kernel cost tables (JSON), one per CPU."""
