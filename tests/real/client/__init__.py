"""The blocking client beside sockets, TLS and servers of tokens."""
