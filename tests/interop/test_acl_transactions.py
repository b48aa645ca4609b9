"""Transactional producers of real libraries lose a permission before each of their steps.

They get an error within their own time limits. No record of the transaction is visible, and it ends
by their abort or by its timeout. The same transactional id continues once the permission is back.
`INTEROP_BROKER=kafka` demands the same of Apache Kafka 4.3.0.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator

import pytest

from barnabas.broker.security.acls.operations import Operation, ResourceType
from barnabas.protocol.messages.create_acls import AclCreation
from barnabas.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.broker.security.access_users import add_acls, allow, remove_acls
from tests.counterparts.secured import (
    ADMIN,
    PASSWORD,
    Secured,
    SecuredEmbedded,
    SecuredKafka,
    librdkafka_login,
    python_login,
)
from tests.counterparts.wire_client import WireClient
from tests.interop.transactional import PRODUCERS, Confluent, Rejected, Transactional, committed
from tests.products import case
from tests.requests import create_topic
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

SECURED: dict[str, type[Secured]] = {"barnabas": SecuredEmbedded, "kafka": SecuredKafka}
WORKER = "worker"
TIMEOUT_MS, SHORT_MS = 600_000, 10_000
"""More than any step takes; and, at Apache Kafka, for a transaction that only its time ends."""
# librdkafka may report that a record was purged, since its transaction was denied.
TOLD = r"(?i)authorization|^KafkaError$|^_PURGE_QUEUE$"
"""aiokafka and kafka-python have no name of their own for some of the denials."""
STEPS = ("init", "send", "send offsets", "commit")
ASKED = {
    "write the id": ("init", "send", "send offsets", "commit"),
    "write the topic": ("send",),
    "read the group": ("send offsets",),
    "read the source": ("send offsets",),
}
"""The steps that ask for a right."""


def rights(topic: str) -> dict[str, list[AclCreation]]:
    """Return the worker's ACLs, by the same names for topic, group and transactional id."""
    return {
        "write the id": allow(WORKER, ResourceType.TRANSACTIONAL_ID, topic, Operation.WRITE),
        "write the topic": allow(WORKER, ResourceType.TOPIC, topic, Operation.WRITE),
        "read the group": allow(WORKER, ResourceType.GROUP, topic, Operation.READ),
        "read the source": allow(WORKER, ResourceType.TOPIC, f"{topic}-in", Operation.READ),
    }


@pytest.fixture(scope="module")
def broker() -> Iterator[Secured]:
    kind = SECURED[os.environ.get("INTEROP_BROKER", "barnabas")]
    settings = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}
    with kind(dict.fromkeys((ADMIN, WORKER), PASSWORD), None, **settings) as running:
        yield running


class Run:
    """One transaction of one library, step by step."""

    def __init__(
        self, broker: Secured, kind: type[Transactional], topic: str, timeout_ms: int = TIMEOUT_MS
    ) -> None:
        self._broker = broker
        self._kind = kind
        self._topic = topic
        self._timeout_ms = timeout_ms
        self._producer: Transactional | None = None

    def do(self, step: str) -> None:
        """Take a step; raises Rejected."""
        if step == "init":
            login = librdkafka_login if self._kind is Confluent else python_login
            servers = self._broker.sasl_servers
            self._producer = self._kind(servers, self._topic, self._timeout_ms, **login(WORKER))
            return
        producer = self._producer
        assert producer is not None
        if step == "send":
            producer.begin()
            producer.send(self._topic, 0, b"half")
        elif step == "send offsets":
            producer.send_offsets({(f"{self._topic}-in", 0): 7}, self._topic)
        else:
            producer.commit()

    def abort(self) -> None:
        """Abort, as far as the library and the broker still allow it."""
        if self._producer is not None:
            # aiokafka asserts that it can, after an error that is fatal to it.
            with contextlib.suppress(Rejected, AssertionError):
                self._producer.abort()

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()


@pytest.fixture
def admin(broker: Secured, topic: str) -> Iterator[WireClient]:
    """Yield a super user's connection, after creating both topics and the worker's ACLs."""
    with WireClient(broker) as client:
        create_topic(client, topic)
        create_topic(client, f"{topic}-in")
        add_acls(client, [acl for acls in rights(topic).values() for acl in acls])
        yield client


def ends(client: WireClient, topic: str) -> tuple[int, int]:
    """Return the last stable offset and the end of the log."""
    found = []
    for isolation in (1, 0):
        asked = [ListOffsetsTopic(topic, [ListOffsetsPartition(0, -1, -1)])]
        answer = client.ask(LIST_OFFSETS, ListOffsetsRequest(-1, isolation, asked), 7)
        found.append(answer.topics[0].partitions[0].offset)
    return found[0], found[1]


def check_committed(broker: Secured, topic: str, *values: bytes) -> None:
    """Check that `read_committed` consumers see these values after the markers were written."""
    wanted = {0: list(values)} if values else {}
    assert committed(broker.bootstrap_servers, topic, 1, wanted) == wanted


def losses() -> Iterator[object]:
    """Yield each library with each step and loss; in `make test` each step and loss once.

    Each library then has every step and every loss.
    """
    libraries = [*PRODUCERS]
    for (step_number, step), (lost_number, lost) in itertools.product(
        enumerate(STEPS), enumerate(ASKED)
    ):
        chosen = libraries[(step_number + lost_number) % len(libraries)]
        for library in libraries:
            yield case(library, step, lost, in_test=library == chosen)


@pytest.mark.parametrize(("library", "step", "lost"), [*losses()])
def test_a_right_is_lost_in_front_of_a_step(broker, admin, topic, library, step, lost):
    left = STEPS[STEPS.index(step) :]
    denied = next((each for each in left if each in ASKED[lost]), None)
    # A client that may not write the id cannot abort, either; others than librdkafka do not after a
    # denial.
    aborts = library == Confluent.name and lost != "write the id"
    has_clock = isinstance(broker, SecuredEmbedded)
    timeout_ms = TIMEOUT_MS if denied is None or aborts or has_clock else SHORT_MS
    run = Run(broker, PRODUCERS[library], topic, timeout_ms)
    try:
        for before in STEPS[: STEPS.index(step)]:
            run.do(before)
        remove_acls(admin, rights(topic)[lost])
        for each in left:
            if each == denied:
                with pytest.raises(Rejected, match=TOLD):
                    run.do(each)
                break
            run.do(each)
        if denied is None:
            check_committed(broker, topic, b"half")
            return
        run.abort()
    finally:
        run.close()
    if isinstance(broker, SecuredEmbedded) and not aborts:
        broker.let_pass(TIMEOUT_MS / 1000)
    wait_until(lambda: len(set(ends(admin, topic))) == 1, lambda: ends(admin, topic))
    check_committed(broker, topic)
    add_acls(admin, rights(topic)[lost])
    again = Run(broker, PRODUCERS[library], topic)
    try:
        for each in STEPS:
            again.do(each)
    finally:
        again.close()
    check_committed(broker, topic, b"half")
