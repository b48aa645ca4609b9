"""A real broker inside a test, and what tests do to it."""
