"""Every release opens what the ones before it have left; a later one's is refused."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from barnabas.broker.cli.commands.check import problems_of
from barnabas.broker.config.loading.loader import load_config
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.metastore.interface import MetaStoreError
from barnabas.testing import Broker
from tests.broker.formats.sample import (
    COMMITTED,
    GROUP_OFFSETS,
    OPEN_AT_THE_END,
    ORDERS,
    PRICES,
    SAMPLES,
    SETTINGS,
    unpack,
)
from tests.counterparts.offsets_client import OffsetsClient
from tests.crash.transaction_client import Producer

ALL = sorted(SAMPLES.glob("*.tar.gz"))
assert ALL, "no sample is here"


@pytest.fixture(params=ALL, ids=lambda path: path.name.removesuffix(".tar.gz"))
def directory(request, tmp_path) -> Path:
    unpack(request.param, tmp_path / "data")
    return tmp_path / "data"


def values(broker: Broker, isolation: str) -> set[bytes]:
    return {record.value for record in broker.records(ORDERS, isolation).result}


def test_sample_passes_the_check(directory):
    config = load_config(overrides=[f"log.dirs={directory}"]).config
    assert problems_of(str(directory), config) == []


def test_sample_is_readable_and_writable(directory):
    with Broker(storage=directory, config=SETTINGS) as broker:
        topics = broker.call(lambda: {*broker.server.catalogue.topics})
        assert topics == {ORDERS, PRICES, "__consumer_offsets", "__transaction_state"}
        # What is behind the transaction that is open is not stable yet.
        committed = values(broker, "read_committed")
        assert committed == {*COMMITTED}
        everything = {*COMMITTED, b"aborted-classic", b"aborted-implicit", OPEN_AT_THE_END}
        assert values(broker, "read_uncommitted") == everything
        broker.port = broker.address[1]
        with OffsetsClient(broker) as client:
            client.find("any", 0)
            client.find("any", 1)
            assert client.fetch("readers", {ORDERS: [0, 1]}) == GROUP_OFFSETS
            # The producer no longer exists: the next one with its id aborts the open transaction.
            producer = Producer(client, "left-open", 2)
            assert producer.init() == ErrorCode.NONE
            assert producer.write((ORDERS, 0), b"new")[0] == ErrorCode.NONE
            assert producer.end(commit=True) == ErrorCode.NONE
    with Broker(storage=directory, config=SETTINGS) as broker:
        assert values(broker, "read_committed") == {*COMMITTED, b"new"}


def test_a_later_format_is_refused(directory, tmp_path):
    before = tmp_path / "before"
    with sqlite3.connect(directory / "barnabas-metadata.sqlite") as metadata:
        metadata.execute("UPDATE cluster SET format_version = 2")
    metadata.close()
    shutil.copytree(directory, before)
    with (
        pytest.raises(MetaStoreError, match=r"has format 2, .* later release.* up to 1"),
        Broker(storage=directory, config=SETTINGS),
    ):
        pass
    for path in before.rglob("*.log"):
        assert path.read_bytes() == (directory / path.relative_to(before)).read_bytes()
