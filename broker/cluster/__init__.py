"""Brokers of a cluster, and the partitions that each of them leads."""
