"""The store of a cluster in memory."""
