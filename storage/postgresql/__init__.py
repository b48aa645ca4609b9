"""The metadata and logs of a cluster in PostgreSQL."""
