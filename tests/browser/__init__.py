"""The console as a person meets it: a real broker, real clients, a real browser."""
