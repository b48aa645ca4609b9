"""TLS, key servers, client libraries, and how long a login computes."""
