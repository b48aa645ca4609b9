"""Requests by wire, with transactions of protocol v1."""

from __future__ import annotations

from tests.workload.drivers import wire
from tests.workload.drivers.wire import Input, Offsets, Reader, Sender
from tests.workload.wire_transactions import CLASSIC

__all__ = ["Input", "Offsets", "Reader", "Sender", "Session"]


class Session(wire.Session):
    """A transactional producer."""

    produce_version = CLASSIC
