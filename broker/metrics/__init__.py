"""Metrics: counted as plain integers where things happen, gathered at a request."""
