"""TLS of others: openssl, Java, and sockets of the kernel."""
