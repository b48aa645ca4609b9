"""Logs of a cluster: its index, flushes that the store commits, loading."""
