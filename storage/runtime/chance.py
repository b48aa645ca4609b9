"""Random identifiers and secrets. In a simulation, its seed decides them."""

from __future__ import annotations

import base64
import secrets
import uuid

from barnabas.storage.runtime.machine import here


def random_bytes(count: int) -> bytes:
    """Return ``count`` unpredictable bytes, or bytes that the seed decides in a simulation."""
    machine = here()
    return secrets.token_bytes(count) if machine is None else machine.random_bytes(count)


def random_below(limit: int) -> int:
    """Return a random number from 0 to ``limit`` - 1; ``limit`` must be far below 2**64."""
    return int.from_bytes(random_bytes(16)) % limit


def random_text(count: int) -> str:
    """Return ``count`` random bytes in URL-safe base64, without padding."""
    return base64.urlsafe_b64encode(random_bytes(count)).rstrip(b"=").decode()


def random_uuid() -> uuid.UUID:
    """Return a new random UUID (version 4)."""
    return uuid.UUID(bytes=random_bytes(16), version=4)
