"""Lessons are run as programs by tests/examples/test_notebooks.py, not imported as modules."""

collect_ignore_glob = ["lesson_*.py"]
