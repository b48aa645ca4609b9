"""Pipelines in Spark drivers of their own, which are killed at every step: the crash tables."""
