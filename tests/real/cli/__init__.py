"""Commands as processes: signals, pipes, terminals, TLS, and brokers of `barnabas serve`."""
