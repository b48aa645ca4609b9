"""Errors of a sink about brokers that are missing or silent, and servers that are no brokers."""

import socket
import threading

import pytest

from barnabas.broker.client import errors
from barnabas.broker.client.brokers import Brokers
from barnabas.broker.client.connection import Connection
from barnabas.broker.client.errors import Unreachable
from barnabas.protocol.client import AdvertisedVersions
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.spark_connector.cluster import cluster as cluster_module
from barnabas.spark_connector.cluster.cluster import Cluster
from barnabas.spark_connector.errors import (
    BrokerTooOld,
    BrokerUnreachable,
    NotLetIn,
)


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def address(server):
    return server.getsockname()[:2]


def cluster_of(server, timeout_ms=300):
    host, port = address(server)
    return Cluster(
        f"{host}:{port}", client_id="test", timeout_ms=timeout_ms, request_timeout_ms=100
    )


def serve(server, *answers):
    """Send bytes to each connection, and close it."""

    def run():
        for answer in answers:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_broker_that_is_not_there_is_named(listener):
    with cluster_of(listener) as cluster:
        listener.close()
        with pytest.raises(BrokerUnreachable, match="Connection refused; check that") as caught:
            cluster.transaction_version()
    assert cluster.servers in str(caught.value)
    assert "\n" not in str(caught.value)


def test_silent_broker_is_abandoned_after_the_timeout(listener):
    with cluster_of(listener) as cluster, pytest.raises(BrokerUnreachable, match="no answer in"):
        cluster.partition_count("topic")


def test_login_refused_by_the_next_broker_names_the_options(listener, monkeypatch):
    def turn_to_another(self):
        raise errors.NotLetIn("host:1: login by me: refused")

    def ask_in_vain():
        raise cluster_module.NotYet("the controller is not known")

    monkeypatch.setattr(cluster_module, "_BELIEVED_S", -1)
    monkeypatch.setattr(Brokers, "turn_to_another", turn_to_another)
    with cluster_of(listener, timeout_ms=30_000) as cluster:
        wanted = r"^Asking is not possible, host:1: .*; the options kafka\.security"
        with pytest.raises(NotLetIn, match=wanted):
            cluster.until("Asking", cluster.deadline(), ask_in_vain)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not Kafka's"),
        (b"\x00\x00\x00\x02\x00\x00", "not Kafka's"),
        (b"\xff\xff\xff\xff", "not Kafka's"),
        (b"\x00\x00", "closed during"),
        (b"", "closed during"),
    ],
    ids=range(5),
)
def test_server_without_kafka_protocol_is_detected(listener, answer, problem):
    thread = serve(listener, answer)
    with pytest.raises(Unreachable, match=problem):
        Connection(address(listener), "test", 60)
    thread.join()


def test_a_request_that_the_broker_lacks_is_said_so(listener, monkeypatch):
    def introduce(self):
        self.versions = AdvertisedVersions.from_response(
            ApiVersionsResponse(api_keys=[ApiVersion(END_TXN.key, 9, 10)])
        )

    monkeypatch.setattr(Connection, "_introduce", introduce)
    with cluster_of(listener) as cluster, pytest.raises(BrokerTooOld, match=r"Kafka 2\.5") as error:
        cluster.ask("Ending", cluster.anywhere, END_TXN, EndTxnRequest("id", 1, 1, committed=True))
    host, port = address(listener)
    said = f"Ending failed at {host}:{port}: the broker speaks versions 9-10 of EndTxn"
    assert str(error.value).startswith(said)
