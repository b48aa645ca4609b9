"""Client libraries under ACLs: denied, let in, denied again; and they make and delete them."""

from __future__ import annotations

import asyncio
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import aiokafka
import confluent_kafka
import pytest
from aiokafka.errors import GroupAuthorizationFailedError as AioGroupDenied
from aiokafka.errors import TopicAuthorizationFailedError as AioTopicDenied
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from barnabas.broker.security.acls.operations import Operation
from barnabas.broker.security.acls.operations import ResourceType as Kind
from tests.broker.security.access_users import add_acls, allow, remove_acls
from tests.certificates import Authority
from tests.counterparts.kcat import run_kcat
from tests.counterparts.logins import (
    Login,
    Tls,
    aiokafka_settings,
    kafka_python_settings,
    librdkafka_settings,
)
from tests.counterparts.secured import (
    ADMIN,
    PASSWORD,
    Secured,
    SecuredEmbedded,
)
from tests.counterparts.wire_client import WireClient
from tests.interop.secured import SecuredBarnabas as BarnabasWithTls
from tests.interop.secured import SecuredBroker, store
from tests.requests import create_topic
from tests.waiting import wait_until

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka.admin import ACL, ACLFilter, ACLOperation, ACLPermissionType, ResourcePattern
    from kafka.admin import ACLResourcePatternType as PatternOfKafkaPython
    from kafka.admin import ResourceType as TypeOfKafkaPython

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

WRITER, READER, STRANGER = "writer", "reader", "stranger"
TIMEOUT_S = 60
TOLD = r"(?i)authorization"


class Denied(Exception):
    """The client received an authorization error."""


class Client(Protocol):
    """The interface of a library in these tests, as one user."""

    def __init__(self, servers: str, login: Login) -> None: ...

    def produce(self, topic: str, value: bytes) -> None:
        """Write a record; raise Denied."""

    def consume(self, topic: str) -> bytes:
        """Read the next record in the group called like the topic; raise Denied."""

    def close(self) -> None: ...


class KafkaPython:
    """kafka-python."""

    def __init__(self, servers: str, login: Login) -> None:
        self._config = {"bootstrap_servers": servers, **kafka_python_settings(login)}
        self._producer: Any = None
        self._consumer: Any = None

    def produce(self, topic: str, value: bytes) -> None:
        if self._producer is None:
            self._producer = kafka.KafkaProducer(**self._config, max_block_ms=20_000)
        try:
            self._producer.send(topic, value).get(TIMEOUT_S)
        except kafka.errors.KafkaError as error:
            raise Denied(repr(error)) from error

    def consume(self, topic: str) -> bytes:
        if self._consumer is None:
            self._consumer = kafka.KafkaConsumer(
                **self._config, group_id=topic, auto_offset_reset="earliest"
            )
            # It does not join: 3.0.12 on a busy machine may loop forever if it has joined before it
            # knew of any partition. It requests the group's offsets in any case.
            self._consumer.assign([kafka.TopicPartition(topic, 0)])
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                found = self._consumer.poll(200, max_records=1)
            except kafka.errors.AuthorizationError as error:
                raise Denied(repr(error)) from error
            for records in found.values():
                return records[0].value
        raise TimeoutError

    def close(self) -> None:
        for each in (self._producer, self._consumer):
            if each is not None:
                each.close(timeout_ms=1000) if each is self._consumer else each.close(timeout=1)


class Confluent:
    """confluent-kafka."""

    def __init__(self, servers: str, login: Login) -> None:
        self._config = {"bootstrap.servers": servers, **librdkafka_settings(login)}
        self._producer: Any = None
        self._consumer: Any = None

    def produce(self, topic: str, value: bytes) -> None:
        if self._producer is None:
            self._producer = confluent_kafka.Producer(self._config | {"linger.ms": 0})
        failed: list[Any] = []
        self._producer.produce(topic, value, on_delivery=lambda error, _m: failed.append(error))
        assert not self._producer.flush(TIMEOUT_S)
        if failed[0] is not None:
            raise Denied(str(failed[0]))

    def consume(self, topic: str) -> bytes:
        if self._consumer is None:
            more = {"group.id": topic, "auto.offset.reset": "earliest"}
            self._consumer = confluent_kafka.Consumer(self._config | more)
            self._consumer.subscribe([topic])
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            message = self._consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is None:
                value: bytes = message.value()
                return value
            if "AUTHORIZATION" in error.name():
                raise Denied(str(error))
        raise TimeoutError

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()


class AioKafka:
    """aiokafka."""

    def __init__(self, servers: str, login: Login) -> None:
        self._loop = asyncio.new_event_loop()
        self._config = {"bootstrap_servers": servers, **aiokafka_settings(login)}
        self._producer: Any = None
        self._consumer: Any = None

    def produce(self, topic: str, value: bytes) -> None:
        async def send() -> None:
            if self._producer is None:
                self._producer = aiokafka.AIOKafkaProducer(**self._config)
                await self._producer.start()
            await self._producer.send_and_wait(topic, value)

        try:
            self._loop.run_until_complete(asyncio.wait_for(send(), TIMEOUT_S))
        except AioTopicDenied as error:
            raise Denied(repr(error)) from error

    def consume(self, topic: str) -> bytes:
        async def receive() -> bytes:
            if self._consumer is None:
                self._consumer = aiokafka.AIOKafkaConsumer(
                    topic, **self._config, group_id=topic, auto_offset_reset="earliest"
                )
                await self._consumer.start()
            record = await self._consumer.getone()
            value: bytes = record.value
            return value

        try:
            return self._loop.run_until_complete(asyncio.wait_for(receive(), TIMEOUT_S))
        except (AioTopicDenied, AioGroupDenied) as error:
            raise Denied(repr(error)) from error

    def close(self) -> None:
        for each in (self._producer, self._consumer):
            if each is not None:
                self._loop.run_until_complete(each.stop())
        self._loop.close()


CLIENTS: tuple[type[Client], ...] = (KafkaPython, Confluent, AioKafka)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    users = dict.fromkeys((ADMIN, WRITER, READER, STRANGER), PASSWORD)
    with SecuredEmbedded(users, tmp_path_factory.mktemp("secured")) as running:
        yield running


@pytest.fixture
def admin(broker: Secured, topic: str) -> Iterator[WireClient]:
    """Yield a super user's connection; create the test's topic and one other ACL."""
    with WireClient(broker) as client:
        create_topic(client, topic)
        yield client


def login_of(user: str) -> Login:
    """Return the login of a user with a password."""
    return Login("PLAIN", user, PASSWORD)


def rights(topic: str, writer: str = WRITER, reader: str = READER) -> list[Any]:
    """Return the ACLs that the writer and the reader need."""
    return [
        *allow(writer, Kind.TOPIC, topic, Operation.WRITE),
        *allow(reader, Kind.TOPIC, topic, Operation.READ),
        *allow(reader, Kind.GROUP, topic, Operation.READ),
    ]


@pytest.fixture
def made(broker: Secured) -> Iterator[Callable[[type[Client], str], Client]]:
    clients: list[Client] = []

    def make(kind: type[Client], user: str) -> Client:
        clients.append(kind(broker.sasl_servers, login_of(user)))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.mark.parametrize("kind", CLIENTS)
def test_client_without_acl_gets_authorization_error(made, admin, topic, kind):
    with pytest.raises(Denied, match=TOLD):
        made(kind, STRANGER).produce(topic, b"never")
    with pytest.raises(Denied, match=TOLD):
        made(kind, STRANGER).consume(topic)
    add_acls(admin, rights(topic))
    writer, reader = made(kind, WRITER), made(kind, READER)
    writer.produce(topic, b"first")
    assert reader.consume(topic) == b"first"
    with pytest.raises(Denied, match=TOLD):
        made(kind, READER).produce(topic, b"never")
    remove_acls(admin, rights(topic))


def check_loss_in_mid_stream(
    writer: Client, reader: Client, admin: WireClient, topic: str, needed: list[Any]
) -> None:
    """Take away from a writer and a reader what they need, and see them told."""
    add_acls(admin, needed)
    for number in range(50):
        writer.produce(topic, b"%d" % number)
    assert [reader.consume(topic) for _ in range(50)] == [b"%d" % n for n in range(50)]
    remove_acls(admin, needed[:1])
    with pytest.raises(Denied, match=TOLD):
        writer.produce(topic, b"never")
    remove_acls(admin, needed[1:2])
    with pytest.raises(Denied, match=TOLD):
        reader.consume(topic)
    remove_acls(admin, needed[2:])


@pytest.mark.parametrize("kind", CLIENTS)
def test_removed_acl_ends_produce_and_consume_in_mid_stream(made, admin, topic, kind):
    check_loss_in_mid_stream(made(kind, WRITER), made(kind, READER), admin, topic, rights(topic))


# One whose name the listener's rule makes shorter, and one whose name is as the certificate has it.
CERTIFIED = {"CN=writer,O=Barn": "writer", "CN=reader,O=Elsewhere": "CN=reader,O=Elsewhere"}


@pytest.fixture(scope="module")
def certified(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[SecuredBroker, list[Login]]]:
    """A broker that knows its clients by their certificates, and how a writer and a reader come."""
    directory = tmp_path_factory.mktemp("certified")
    authority = Authority()
    trusted = directory / "trusted.pem"
    trusted.write_text(authority.root_pem)
    logins = [
        Login(tls=Tls(str(trusted), store(directory / f"{number}.pem", authority.issue(name))))
        for number, name in enumerate(CERTIFIED)
    ]
    with BarnabasWithTls(directory / "broker", authority) as running:
        yield running, logins


@pytest.mark.parametrize("kind", CLIENTS)
def test_removed_acl_of_a_certificate_ends_clients_in_mid_stream(certified, topic, kind):
    broker, logins = certified
    with WireClient(broker) as admin:
        create_topic(admin, topic)
        writer, reader = (kind(broker.servers("MTLS"), login) for login in logins)
        try:
            needed = rights(topic, *CERTIFIED.values())
            check_loss_in_mid_stream(writer, reader, admin, topic, needed)
        finally:
            writer.close()
            reader.close()


def test_kcat_gets_authorization_error_until_acls_exist(broker, admin, topic):
    def arguments(user: str) -> list[str]:
        options = [f"-X{key}={value}" for key, value in librdkafka_settings(login_of(user)).items()]
        return ["-b", broker.sasl_servers, "-t", topic, *options]

    with pytest.raises(subprocess.CalledProcessError) as caught:
        run_kcat(["-P", *arguments(STRANGER)], stdin=b"never\n")
    assert b"authorization failed" in caught.value.stderr
    add_acls(admin, rights(topic))
    run_kcat(["-P", *arguments(WRITER)], stdin=b"first\n")
    assert run_kcat(["-C", "-c1", "-o0", *arguments(READER)]) == b"first\n"
    remove_acls(admin, rights(topic))


# ------------------------------------------------------------------------------- administrators


def test_kafka_python_makes_finds_and_deletes_acls(broker):
    config = KafkaPython(broker.sasl_servers, login_of(ADMIN))._config
    pattern = ResourcePattern(TypeOfKafkaPython.TOPIC, "kp-", PatternOfKafkaPython.PREFIXED)
    acls = [
        ACL("User:kp", "*", operation, ACLPermissionType.ALLOW, pattern)
        for operation in (ACLOperation.READ, ACLOperation.WRITE)
    ]
    client = kafka.KafkaAdminClient(**config)
    try:
        assert client.create_acls(acls)["failed"] == []
        wanted = ACLFilter("User:kp", None, ACLOperation.ANY, ACLPermissionType.ANY, pattern)
        found, error = client.describe_acls(wanted)
        assert error.errno == 0
        assert sorted(found, key=repr) == sorted(acls, key=repr)
        only_read = ACLFilter("User:kp", None, ACLOperation.READ, ACLPermissionType.ANY, pattern)
        ((_, deleted, error),) = client.delete_acls([only_read])
        assert [each.operation for each in deleted] == [ACLOperation.READ]
        assert client.describe_acls(wanted)[0] == acls[1:]
        client.delete_acls([wanted])
    finally:
        client.close()


def test_confluent_kafka_makes_finds_and_deletes_acls(broker):
    client = AdminClient(Confluent(broker.sasl_servers, login_of(ADMIN))._config)
    acls = [
        AclBinding(
            ResourceType.GROUP,
            "ck",
            ResourcePatternType.LITERAL,
            "User:ck",
            "10.0.0.0/8",
            operation,
            AclPermissionType.DENY,
        )
        for operation in (AclOperation.READ, AclOperation.DELETE)
    ]
    for done in client.create_acls(acls).values():
        done.result(TIMEOUT_S)
    wanted = AclBindingFilter(
        ResourceType.GROUP,
        "ck",
        ResourcePatternType.LITERAL,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert sorted(client.describe_acls(wanted).result(TIMEOUT_S)) == sorted(acls)
    (deleted,) = client.delete_acls([wanted]).values()
    assert sorted(deleted.result(TIMEOUT_S)) == sorted(acls)
    wait_until(lambda: client.describe_acls(wanted).result(TIMEOUT_S) == [])


def test_admin_without_acl_gets_authorization_error(broker):
    """DescribeAcls is missing here: librdkafka 2.16.0 takes a denial of it for an empty list."""
    client = AdminClient(Confluent(broker.sasl_servers, login_of(STRANGER))._config)
    every = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        client.delete_acls([every])[every].result(TIMEOUT_S)
    assert caught.value.args[0].name() == "CLUSTER_AUTHORIZATION_FAILED"
    assert caught.value.args[0].str() == "ALTER on Cluster:kafka-cluster is denied"
