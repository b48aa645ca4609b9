"""Compaction and retention of sealed segments."""
