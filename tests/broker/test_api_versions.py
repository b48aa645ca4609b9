"""ApiVersions on the wire, where a byte too many has broken clients."""

from __future__ import annotations

import struct

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.testing import Broker
from tests.broker.toy import RawClient, request
from tests.worlds import world

__all__ = ["world"]

KEY = API_VERSIONS.key


@pytest.fixture
async def client():
    async with Broker() as broker:
        client = await RawClient.to(broker.address)
        yield client
        await client.close()


def body(name="client", version="1.0"):
    return b"".join(API_VERSIONS.encode_request(ApiVersionsRequest(name, version), 3))


async def asked(client, version, data=b""):
    tags = b"\0" if version >= 3 else b""
    await client.send(request(KEY, data, version=version, tags=tags, correlation_id=7))
    correlation_id, answer = await client.answer()
    assert correlation_id == 7
    return API_VERSIONS.decode_response(memoryview(answer), 0, version)


@pytest.mark.parametrize("version", range(5))
async def test_the_response_header_has_no_tags_in_any_version(client, version):
    response = await asked(client, version, body() if version >= 3 else b"")
    assert response.error_code == 0
    ranges = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
    assert ranges[PRODUCE.key] == (0, 13)
    assert ranges[KEY] == (0, 4)
    assert list(ranges) == sorted(ranges)


@pytest.mark.parametrize("version", [3, 4])
async def test_the_levels_are_finalized(client, version):
    response = await asked(client, version, body())
    supported = [(f.name, f.min_version, f.max_version) for f in response.supported_features]
    # Clients before version 4 fail when a lowest level is 0.
    from_0 = [("group.version", 0, 1), ("transaction.version", 0, 2)] if version >= 4 else []
    assert supported == [("metadata.version", 7, 30), *from_0]
    assert [(f.name, f.max_version_level) for f in response.finalized_features] == [
        ("metadata.version", 30),
        ("group.version", 1),
        ("transaction.version", 2),
    ]
    assert response.finalized_features_epoch >= 0


@pytest.mark.parametrize("level", [0, 1])
async def test_transactions_may_be_those_of_older_brokers(level):
    async with Broker(config={"barnabas.transaction.version": str(level)}) as broker:
        client = await RawClient.to(broker.address)
        response = await asked(client, 4, body())
        await client.close()
    levels = {each.name: each.max_version_level for each in response.finalized_features}
    assert levels.get("transaction.version", 0) == level


@pytest.mark.parametrize("version", [5, 6, 100, 32767])
async def test_an_unknown_version_is_answered_in_version_0_with_one_entry(client, version):
    await client.send(request(KEY, b"what it may be", version=version, tags=b"\0"))
    expected = struct.pack(">hihhh", ErrorCode.UNSUPPORTED_VERSION, 1, 18, 0, 4)
    assert await client.answer() == (1, expected)
    assert (await asked(client, 4, body())).error_code == 0  # the connection stays usable


async def test_an_unknown_version_without_the_tags_of_its_header_ends_the_connection(client):
    await client.send(request(KEY, version=5))
    assert await client.closed() == b""


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a", ""), ("-a", "1"), ("a b", "1")])
async def test_illegal_client_software_is_an_invalid_request(client, name, version):
    response = await asked(client, 3, body(name, version))
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.api_keys == []


@pytest.mark.parametrize("name", ["a", "apache-kafka-java", "librdkafka", "x.y-9"])
async def test_legal_client_software(client, name):
    assert (await asked(client, 4, body(name, "2.16.1-rc1"))).error_code == 0
