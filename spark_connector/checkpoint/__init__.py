"""Spark's checkpoint: the batches that it records, and its files on any file system."""
