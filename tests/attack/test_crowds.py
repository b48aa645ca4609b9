"""Many clients that each ask for a little at the same moment: together they are not one turn."""

from __future__ import annotations

import threading
import time

from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.storage.metastore.sqlite import SqliteMetaStore
from barnabas.testing import Broker
from tests.attack.loop_lag import loop_lag
from tests.broker.sample_requests import error_codes

CLIENTS, TOPICS = 20, 3
HANG_SECONDS = 120
"""Timeout of a client, which ends a hang: the topics of all clients are created one by one."""
COMMIT_SECONDS = 0.02
"""Duration of a commit of the metadata on a slow disk; here it is busy work, which the test can
see."""
BUSY_MS_MOST = 200
"""One commit, and as much again for every doubt; the commits of all clients are 400 ms."""


def test_topics_that_many_clients_cause_are_made_one_after_the_other(monkeypatch):
    create_topic = SqliteMetaStore.create_topic

    def create_slowly(*arguments):
        until = time.thread_time() + COMMIT_SECONDS
        while time.thread_time() < until:
            pass
        return create_topic(*arguments)

    monkeypatch.setattr(SqliteMetaStore, "create_topic", create_slowly)
    found: list[int] = []

    def ask(client: WireClient, number: int) -> None:
        names = [f"new-{number}-{each}" for each in range(TOPICS)]
        asked = MetadataRequest([MetadataRequestTopic(name=name) for name in names])
        asked.allow_auto_topic_creation = True
        found.extend(error_codes(client.ask(METADATA, asked, 9)))

    with Broker(config={"auto.create.topics.enable": "true"}) as broker:
        clients = [WireClient(broker.address, timeout_seconds=HANG_SECONDS) for _ in range(CLIENTS)]
        threads = [
            threading.Thread(target=ask, args=(client, number))
            for number, client in enumerate(clients)
        ]
        with loop_lag(broker, f"{CLIENTS} clients x {TOPICS} new topics") as lag:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        made = broker.call(lambda: len(broker.server.catalogue.topics))
        for client in clients:
            client.close()
    assert set(found) == {ErrorCode.NONE}
    assert made == CLIENTS * TOPICS
    assert lag.busy_ms < BUSY_MS_MOST
