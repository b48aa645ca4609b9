"""Chance: identifiers and secrets. In a simulation they come from its seed."""

from __future__ import annotations

import base64
import secrets
import uuid

from barnabas.storage.runtime.machine import here


def random_bytes(count: int) -> bytes:
    """Return bytes that nobody can guess."""
    machine = here()
    return secrets.token_bytes(count) if machine is None else machine.random_bytes(count)


def random_below(limit: int) -> int:
    """Return a number from 0 to ``limit`` - 1, for limits far below 2**64."""
    return int.from_bytes(random_bytes(16)) % limit


def random_text(count: int) -> str:
    """Return ``count`` random bytes as letters, digits, ``-`` and ``_``."""
    return base64.urlsafe_b64encode(random_bytes(count)).rstrip(b"=").decode()


def random_uuid() -> uuid.UUID:
    """Return a new random UUID (version 4)."""
    return uuid.UUID(bytes=random_bytes(16), version=4)
