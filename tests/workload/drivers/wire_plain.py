"""Sends by wire without idempotence: a batch without a response is not sent again."""

from __future__ import annotations

from tests.workload.drivers import wire


class Sender(wire.Sender):
    """A producer outside of transactions, some of whose records have an unknown fate."""

    is_idempotent = False
