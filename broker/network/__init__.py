"""Sockets, frames and connections: bytes in, answers out."""
