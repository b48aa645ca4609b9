"""The object store of a cluster."""
