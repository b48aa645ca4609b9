"""Histories of what clients did and saw, and a checker of what must not be in them."""
