"""Changes by the console: one table of them, made through the same doors as those of clients."""
