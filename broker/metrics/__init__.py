"""Metrics: counted as plain integers where things happen, gathered when somebody asks."""
