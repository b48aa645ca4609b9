"""HTTP requests and responses, without I/O."""
