"""The Spark connector's processes, signals, HTTP port, and TLS connections."""
