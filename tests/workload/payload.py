"""Bytes of a record: its value, which no other record has, and as much padding as a plan wants."""

from __future__ import annotations

SEPARATOR = "|"


def payload(value: str, pad_bytes: int = 0) -> bytes:
    """Return the bytes of a value, with padding that follows from it."""
    return (
        f"{value}{SEPARATOR}{_padding(value, pad_bytes)}".encode() if pad_bytes else value.encode()
    )


def value_of(data: bytes | None) -> str:
    """Return the value of a record; with wrong padding, a value that no client has sent."""
    value, separator, padding = (data or b"").decode().partition(SEPARATOR)
    if separator and padding != _padding(value, len(padding)):
        return f"{value}{SEPARATOR}damaged"
    return value


def _padding(value: str, count: int) -> str:
    return (value * (count // len(value) + 1))[:count]
