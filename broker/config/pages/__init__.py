"""The documentation of the keys."""
