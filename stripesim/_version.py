"""Hold the version number."""

__version__ = "0.4.0"
