"""Refusals of requests of a consumer group."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode


class Refusal(NamedTuple):
    """An error for the client."""

    code: ErrorCode
    message: str
