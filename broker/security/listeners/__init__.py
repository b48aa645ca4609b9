"""Security of each listener: TLS, mechanisms, certificates."""
