"""A blocking client: for the command line, for tests, for tools."""
