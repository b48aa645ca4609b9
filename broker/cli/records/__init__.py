"""Producing and consuming by the command line."""
