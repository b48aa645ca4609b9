"""Acknowledged ACLs survive kill -9, deleted ones do not return; each request is atomic."""

from __future__ import annotations

import threading
from random import Random
from typing import Any

from barnabas.broker.security.acls.operations import (
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.protocol.messages.create_acls import CREATE_ACLS, AclCreation, CreateAclsRequest
from barnabas.protocol.messages.delete_acls import (
    DELETE_ACLS,
    DeleteAclsFilter,
    DeleteAclsRequest,
)
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.wire import ZERO_UUID
from tests.broker.security.access_users import (
    UserClient,
    acl,
    add_acls,
    allow,
    known_acls,
    remove_acls,
)
from tests.counterparts.secured import ADMIN, PASSWORD, SecuredBarnabas
from tests.counterparts.wire_client import WireClient
from tests.requests import create_topic
from tests.seeds import SEED
from tests.waiting import wait_until

ROUNDS = 6
USERS = {ADMIN: PASSWORD, "alice": PASSWORD}
TOPIC = ResourceType.TOPIC


def operations(broker: SecuredBarnabas, topic: str) -> int:
    """Return the operations that alice may perform on a topic."""
    client = UserClient(broker.sasl_address, "alice")
    try:
        asked = MetadataRequest([MetadataRequestTopic(ZERO_UUID, topic)], False, False, True)
        (answer,) = client.ask(METADATA, asked, 10).topics
        bits: int = answer.topic_authorized_operations
        return bits
    finally:
        client.close()


def test_one_of_several_is_deleted_and_the_others_stay_cve_2024_27309(tmp_path):
    acls = allow("alice", TOPIC, "t", Operation.READ, Operation.WRITE, Operation.ALTER)
    deny = acl("alice", TOPIC, "t", Operation.DESCRIBE, Permission.DENY)
    prefixed = acl("alice", TOPIC, "t", Operation.DELETE, pattern=PatternType.PREFIXED)
    bits = {each: 1 << each for each in Operation}
    all_of_them = sum(
        bits[each]
        for each in (Operation.READ, Operation.ALTER, Operation.DELETE, Operation.DESCRIBE)
    )
    with SecuredBarnabas(USERS, tmp_path) as broker:
        with WireClient(broker) as client:
            create_topic(client, "t")
            add_acls(client, [*acls, deny, prefixed])
            remove_acls(client, [acls[1], deny])
            there = known_acls(client)
            assert len(there) == 3
        assert operations(broker, "t") == all_of_them
        for _ in range(2):
            broker.kill()
            broker.restart()
            with WireClient(broker) as client:
                assert known_acls(client) == there
            assert operations(broker, "t") == all_of_them


class Changes:
    """Creates and deletes several ACLs in each request, until the broker has died."""

    def __init__(self, broker: SecuredBarnabas, random: Random) -> None:
        self._broker = broker
        self._random = random
        self.there: set[Any] = set()
        self.maybe: set[Any] = set()
        """The ACLs that exist if the interrupted request took effect."""
        self.acknowledged = 0
        with WireClient(broker) as client:
            self.there = self.maybe = known_acls(client)

    def run(self) -> None:
        try:
            with WireClient(self._broker) as client:
                while True:
                    self._change(client)
        except OSError:
            return

    def _change(self, client: WireClient) -> None:
        random = self._random
        users = [f"User:u{random.randrange(5)}" for _ in range(4)]
        rows = {(TOPIC, "t", 3, user, "*", random.choice([3, 4, 8]), 3) for user in users}
        if random.random() < 0.5:
            self.maybe = self.there | rows
            request = CreateAclsRequest([AclCreation(*row) for row in sorted(rows)])
            client.ask(CREATE_ACLS, request, 3)
        else:
            self.maybe = self.there - rows
            request = DeleteAclsRequest([DeleteAclsFilter(*row) for row in sorted(rows)])
            client.ask(DELETE_ACLS, request, 3)
        self.there = self.maybe
        self.acknowledged += 1


def test_changes_are_there_as_a_whole_whenever_the_broker_is_killed(tmp_path):
    random = Random(SEED)
    acknowledged = 0
    with SecuredBarnabas(USERS, tmp_path) as broker:
        for _ in range(ROUNDS):
            changes = Changes(broker, random)
            running = threading.Thread(target=changes.run)
            running.start()
            running.join(random.uniform(0.05, 0.3))
            # A busy machine gets the time for something to happen.
            wait_until(
                lambda c=changes, r=running: c.acknowledged > 1 or not r.is_alive(),
                "two requests are answered",
            )
            broker.kill()
            running.join()
            broker.restart()
            with WireClient(broker) as client:
                assert known_acls(client) in (changes.there, changes.maybe)
            acknowledged += changes.acknowledged
    assert acknowledged > ROUNDS
