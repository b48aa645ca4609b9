"""Produce, Fetch, ListOffsets and requests about offsets of records."""
