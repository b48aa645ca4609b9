"""What a cluster keeps in PostgreSQL."""
