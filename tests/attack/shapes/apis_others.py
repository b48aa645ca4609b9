"""Rows of the APIs of logins, configurations and administration."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from tests.attack.peer import frame
from tests.attack.shapes.building import (
    BYTES_MOST,
    ELEMENTS,
    TEXT_BYTES,
    Message,
    Row,
    arrays,
    one,
    sample,
    unread,
)
from tests.attack.shapes.shape import ORDINARY, STRANGER, Make, Shape
from tests.attack.shapes.size import part
from tests.attack.shapes.world import WIDE, World
from tests.broker.sample_requests import TOPIC

TOKEN_BYTES = 512 * 1024 - 100
"""Just below `sasl.server.max.receive.size`."""
UNREAD = 5_000
TOPICS_DESCRIBED = part(90_000)
ARRAYS_ONLY = (
    "CreateTopics",
    "DeleteTopics",
    "CreatePartitions",
    "AlterConfigs",
    "IncrementalAlterConfigs",
    "ListConfigResources",
    "DescribeLogDirs",
    "ElectLeaders",
    "UpdateFeatures",
    "AlterPartitionReassignments",
    "ListPartitionReassignments",
    "CreateAcls",
    "DeleteAcls",
    "DescribeClientQuotas",
    "AlterClientQuotas",
    "DescribeUserScramCredentials",
)
"""APIs whose requests have nothing but arrays that could be large."""


def _tokens(mechanism: str, *tokens: bytes) -> Make:
    def make(_world: World) -> Iterable[bytes]:
        yield frame(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism))
        for token in tokens:
            yield frame(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(token))

    return make


def _authenticate() -> list[Shape]:
    pad = b"x" * TOKEN_BYTES
    tokens: dict[str, Make] = {
        "PLAIN, a long password": _tokens("PLAIN", b"\0" + ORDINARY.encode() + b"\0" + pad[:-50]),
        "PLAIN, a long user": _tokens("PLAIN", b"\0" + pad[:-50] + b"\0secret"),
        "PLAIN, separators": _tokens("PLAIN", bytes(TOKEN_BYTES)),
        "SCRAM, a long user": _tokens("SCRAM-SHA-256", b"n,,n=" + pad[:-50] + b",r=nonce"),
        "SCRAM, a long nonce": _tokens("SCRAM-SHA-256", b"n,,n=ordinary,r=" + pad[:-50]),
        "SCRAM, commas": _tokens(
            "SCRAM-SHA-256", b"n,,n=ordinary,r=n" + b",a=" * (TOKEN_BYTES // 4)
        ),
        "SCRAM, escapes": _tokens(
            "SCRAM-SHA-256", b"n,,n=" + b"=2C" * (TOKEN_BYTES // 4) + b",r=n"
        ),
        "SCRAM, a long proof": _tokens(
            "SCRAM-SHA-256", b"n,,n=ordinary,r=nonce", b"c=biws,r=nonce,p=" + pad[:-50]
        ),
    }
    return [Shape(name, make, STRANGER) for name, make in tokens.items()]


def _long_mechanism(_world: World) -> Iterable[bytes]:
    yield frame(SASL_HANDSHAKE, 1, SaslHandshakeRequest("X" * TEXT_BYTES))


def _long_client(_world: World) -> Iterable[bytes]:
    request = ApiVersionsRequest("a-." * (TOKEN_BYTES // 6) + "!", "1" * (TOKEN_BYTES // 3))
    yield frame(API_VERSIONS, 3, request)


def _small_hellos(_world: World) -> Iterable[bytes]:
    return [frame(API_VERSIONS, 3, ApiVersionsRequest("a", "1"))] * UNREAD


def _acls(_world: World) -> DescribeAclsRequest:
    text = "x" * (BYTES_MOST // 4)
    return DescribeAclsRequest(2, text, 3, f"User:{text}", text, 1, 1)


def _configs(count: int, keys: int) -> Message:
    def message(_world: World) -> DescribeConfigsRequest:
        names = [f"key-{number}" for number in range(keys)] or None
        resources = [DescribeConfigsResource(TOPIC, WIDE, names) for _ in range(count)]
        return DescribeConfigsRequest(resources, True, True)

    return message


def _credentials(_world: World) -> AlterUserScramCredentialsRequest:
    upsertions = [
        ScramCredentialUpsertion(ORDINARY, 1, 2**31 - 1, bytes(1000), bytes(32))
        for _ in range(10_000)
    ]
    return AlterUserScramCredentialsRequest(upsertions=upsertions)


def _unread_configs() -> Shape:
    return unread("9,900 topics 20 times, unread", "DescribeConfigs", _configs(9_900, 0), 20)


def _only_arrays() -> dict[str, Row]:
    return {api: arrays(api) for api in ARRAYS_ONLY}


DESCRIBE_CLUSTER: Callable[[World], object] = sample("DescribeCluster")

OTHERS: dict[str, Row] = {
    **_only_arrays(),
    "ApiVersions": [
        Shape("long names before the login", _long_client, STRANGER),
        Shape("long names", _long_client),
        Shape("5,000 requests, unread", _small_hellos, STRANGER, is_read=False),
    ],
    "SaslHandshake": [Shape("a long mechanism", _long_mechanism, STRANGER)],
    "SaslAuthenticate": _authenticate(),
    "DescribeAcls": [one("long texts", "DescribeAcls", _acls)],
    "DescribeCluster": [
        one("its only request", "DescribeCluster", DESCRIBE_CLUSTER),
        unread("5,000 requests, unread", "DescribeCluster", DESCRIBE_CLUSTER, UNREAD),
    ],
    "DescribeConfigs": [
        one(
            f"a topic, {TOPICS_DESCRIBED:,} times",
            "DescribeConfigs",
            _configs(TOPICS_DESCRIBED, 0),
            is_part=True,
        ),
        one("a topic and 99,000 keys", "DescribeConfigs", _configs(1, ELEMENTS - 10)),
        one("1,000 topics and 90 keys each", "DescribeConfigs", _configs(1_000, 90)),
        _unread_configs(),
        *arrays("DescribeConfigs"),
    ],
    "AlterUserScramCredentials": [
        one("10,000 changes with 2^31 iterations", "AlterUserScramCredentials", _credentials),
        *arrays("AlterUserScramCredentials"),
    ],
}
