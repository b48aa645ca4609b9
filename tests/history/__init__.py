"""Histories of what clients did and saw, and what must not be in them, nor in the logs."""
