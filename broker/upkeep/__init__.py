"""Compaction, verification and deletion in the background."""
