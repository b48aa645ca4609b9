"""Cycles of objects: a daemon's collector never frees one that has survived a full collection."""

from __future__ import annotations

import asyncio
import gc

from barnabas.broker import daemon
from barnabas.protocol.errors import ErrorCode
from barnabas.testing import Broker, Security
from tests.broker.security.wire import Wire
from tests.cycles import come_and_go, cycles
from tests.waiting import wait_until


def test_connections_topics_groups_and_transactions_leave_no_cycles(tmp_path):
    with Broker(storage=tmp_path) as broker:
        asyncio.run(come_and_go(broker, 0))  # The internal topics stay.
        with cycles() as found:
            for number in range(1, 4):
                asyncio.run(come_and_go(broker, number))
            broker.call(gc.isenabled)  # What the loop had scheduled is done.
    assert not found


def leave_without_login(broker: Broker) -> None:
    """Fail to log in on one connection, and close another one before its login."""
    with Wire(broker) as wire:
        assert wire.log_in(b"\0alice\0wrong").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert wire.is_closed
    with Wire(broker):
        pass
    wait_until(lambda: not broker.call(lambda: len(broker.server.sockets.connections)))


def test_connections_without_a_login_leave_no_cycles():
    security = Security(protocol="SASL_PLAINTEXT", users=("alice",), mechanisms=("PLAIN",))
    with Broker(security=security) as broker:
        leave_without_login(broker)
        with cycles() as found:
            for _ in range(3):
                leave_without_login(broker)
    assert not found


def test_full_collection_freezes_its_survivors():
    frozen = gc.get_freeze_count()
    gc.callbacks.append(daemon._freeze_survivors)
    try:
        survivors: list[list[object]] = [[] for _ in range(1000)]
        gc.collect()
    finally:
        gc.callbacks.remove(daemon._freeze_survivors)
    assert gc.get_freeze_count() >= frozen + len(survivors)
