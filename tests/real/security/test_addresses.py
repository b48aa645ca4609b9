"""One address in all its spellings: ACLs by librdkafka, and a socket for IPv4 and IPv6."""

from __future__ import annotations

import asyncio
import socket

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from barnabas.broker.http.connection import HttpConnection
from barnabas.testing import Broker
from tests.broker.security.access_users import ADMIN, PASSWORD, settings
from tests.broker.security.test_addresses import LOCAL, OF_LOCAL


async def test_http_connection_through_an_ipv6_socket_has_the_ipv4_address():
    """The broker binds its port for one family; this socket is for both."""
    seen = []

    class Noting(HttpConnection):
        def connection_made(self, transport):
            super().connection_made(transport)
            seen.append(self.host)

    with socket.socket(socket.AF_INET6) as both:
        both.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        both.bind(("::", 0))
        loop = asyncio.get_running_loop()
        async with Broker(config={"barnabas.http.listener": "127.0.0.1:0"}) as broker:
            server = broker.server.http
            made = await loop.create_server(lambda: Noting(server), sock=both)
            _, writer = await asyncio.open_connection(LOCAL, both.getsockname()[1])
            writer.close()
            await writer.wait_closed()
            made.close()
    assert seen == [LOCAL]


@pytest.fixture(scope="module")
def broker():
    with Broker(config=settings([ADMIN, "alice"])) as running:
        running.create_topic("orders")
        yield running


def client_of(broker, user):
    return AdminClient(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": PASSWORD,
        }
    )


@pytest.fixture
def admin(broker):
    made = client_of(broker, ADMIN)
    yield made
    every = (None, None, AclOperation.ANY, AclPermissionType.ANY)
    wanted = AclBindingFilter(ResourceType.ANY, None, ResourcePatternType.ANY, *every)
    for found in made.delete_acls([wanted]).values():
        found.result(30)


def rule(host, permission):
    pattern = ResourcePatternType.LITERAL
    about = ("User:alice", host, AclOperation.DESCRIBE, permission)
    return AclBinding(ResourceType.TOPIC, "orders", pattern, *about)


def add(admin, *rules):
    for made in admin.create_acls(list(rules)).values():
        made.result(30)


def sees(broker):
    return "orders" in client_of(broker, "alice").list_topics(timeout=30).topics


@pytest.mark.parametrize("host", OF_LOCAL)
def test_acl_for_any_spelling_applies(broker, admin, host):
    assert not sees(broker)
    add(admin, rule(host, AclPermissionType.ALLOW))
    assert sees(broker)
    add(admin, rule("*", AclPermissionType.ALLOW), rule(host, AclPermissionType.DENY))
    assert not sees(broker)
    # It is found, and taken away, by another spelling.
    wanted = AclBindingFilter(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.LITERAL,
        "User:alice",
        OF_LOCAL[OF_LOCAL.index(host) - 1],
        AclOperation.ANY,
        AclPermissionType.DENY,
    )
    assert [each.host for each in admin.describe_acls(wanted).result(30)] == [LOCAL]
    ((_, removed),) = admin.delete_acls([wanted]).items()
    assert len(removed.result(30)) == 1
    assert sees(broker)


@pytest.mark.parametrize("host", ["fe80::1%eth0", "localhost", "127.1"])
def test_acl_that_could_never_apply_is_refused(admin, host):
    with pytest.raises(KafkaException, match="no address, network or"):
        add(admin, rule(host, AclPermissionType.DENY))
