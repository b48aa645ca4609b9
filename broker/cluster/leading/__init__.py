"""Partitions that this broker leads: loading, release, upkeep in the store."""
