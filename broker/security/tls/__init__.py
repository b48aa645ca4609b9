"""TLS for both ends: key stores, certificates, contexts. ``ssl`` is imported where it is needed."""
