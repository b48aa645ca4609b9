"""Brokers of a cluster talk to each other: who asks, over which connection, and whom it ended."""
