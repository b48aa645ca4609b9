"""The blocking client: the brokers that it finds, and its errors about the others."""

import socket
import threading

import pytest

from barnabas.broker.admin.exchange import Rejected
from barnabas.broker.cli.retries import may_pass
from barnabas.broker.client.brokers import GROUP, TRANSACTION, Brokers
from barnabas.broker.client.errors import NotKafka, Unreachable
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR
from barnabas.testing import Broker

TIMEOUT_SECONDS = 30


@pytest.fixture(scope="module")
def broker():
    with Broker() as broker:
        yield broker


@pytest.fixture
def brokers(broker):
    with Brokers([broker.address], "test", TIMEOUT_SECONDS) as brokers:
        yield brokers


@pytest.fixture
def nobody():
    """An address that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()


def test_the_first_broker_that_takes_a_connection_is_asked(broker, nobody):
    with Brokers([nobody, broker.address], "test", TIMEOUT_SECONDS) as brokers:
        assert len(brokers.metadata([]).brokers) == 1
        (node_id,) = brokers.node_ids
        assert brokers.node(node_id).name == "{}:{}".format(*broker.address)


def test_every_address_that_fails_is_named(nobody):
    other = ("no-such-host.invalid", 9092)
    brokers = Brokers([nobody, other], "test", TIMEOUT_SECONDS)
    with pytest.raises(Unreachable) as problem:
        brokers.any()
    assert all(f"{host}:{port}: " in str(problem.value) for host, port in (nobody, other))
    assert may_pass(problem.value)


def test_a_broker_that_no_answer_has_named(brokers):
    with pytest.raises(Unreachable, match="broker 7 is not in the metadata"):
        brokers.node(7)


def test_each_lane_has_a_connection_of_its_own_and_a_closed_one_is_replaced(brokers):
    brokers.metadata([])
    (node_id,) = brokers.node_ids
    first = brokers.node(node_id)
    assert brokers.node(node_id) is first
    assert brokers.node(node_id, "data") is not first
    first.close()
    assert brokers.node(node_id).is_open
    brokers.close()
    assert brokers.any().is_open


def test_asking_for_a_topic_does_not_create_it(brokers):
    for _ in range(2):
        (topic,) = brokers.metadata(["missing"]).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [topic.name for topic in brokers.metadata(None).topics] == []


@pytest.mark.parametrize("kind", [GROUP, TRANSACTION], ids=["groups", "transactions"])
@pytest.mark.parametrize("last", [3, FIND_COORDINATOR.max_version], ids=["one-by-one", "at-once"])
def test_coordinators_are_found_and_can_be_connected_to(kind, last):
    with (
        Broker(max_versions={"FindCoordinator": last}) as broker,
        Brokers([broker.address], "test", TIMEOUT_SECONDS) as brokers,
    ):
        found = brokers.coordinators(kind, ["a", "b"])
        assert [(each.key, each.error_code) for each in found] == [("a", 0), ("b", 0)]
        assert brokers.node(found[0].node_id).is_open


def test_where_a_coordinator_is_that_was_not_found_is_not_believed(broker, brokers):
    failure = ErrorCode.COORDINATOR_NOT_AVAILABLE
    with broker.intercept(FIND_COORDINATOR, fail=failure, times=1):
        (found,) = brokers.coordinators(GROUP, ["a"])
    assert found.error_code == failure
    assert brokers.node_ids == []


def test_server_without_kafka_protocol_is_not_retried():
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=greet, args=(server,))
        thread.start()
        brokers = Brokers([server.getsockname()], "test", TIMEOUT_SECONDS)
        with pytest.raises(NotKafka, match="the answer is not Kafka's") as problem:
            brokers.any()
        thread.join()
    assert not may_pass(problem.value)


def greet(server):
    connection, _ = server.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(b"220 ready for mail\r\n")


@pytest.mark.parametrize(
    ("code", "passes"),
    [(ErrorCode.NOT_COORDINATOR, True), (ErrorCode.TOPIC_AUTHORIZATION_FAILED, False)],
)
def test_an_error_passes_if_kafka_calls_it_retriable(code, passes):
    assert may_pass(Rejected("orders", code)) is passes
