"""Users, ACLs and quotas of a stopped Apache Kafka exist in Barnabas after its adoption."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.loading.properties import parse_properties, properties_text
from barnabas.protocol.messages.alter_client_quotas import (
    ALTER_CLIENT_QUOTAS,
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.protocol.messages.alter_user_scram_credentials import (
    ALTER_USER_SCRAM_CREDENTIALS,
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.create_acls import CREATE_ACLS, AclCreation, CreateAclsRequest
from barnabas.protocol.messages.delete_acls import DELETE_ACLS, DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.describe_acls import DESCRIBE_ACLS, DescribeAclsRequest
from barnabas.protocol.messages.describe_client_quotas import (
    DESCRIBE_CLIENT_QUOTAS,
    DescribeClientQuotasRequest,
)
from barnabas.storage.adoption.kraft_metadata import read_kraft_metadata
from barnabas.storage.files.io import LocalFileSystem
from tests.broker.security.wire import Wire
from tests.checkout import ROOT
from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.broker_process import HOST, BrokerProcess
from tests.counterparts.embedded_barnabas import EmbeddedBarnabas
from tests.counterparts.wire_client import WireClient
from tests.interop.recorded_kafka import Barnabas, plain
from tests.waiting import wait_until

CONTROLLED = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
}
ACLS = [
    AclCreation(2, "orders", 3, "User:alice", "*", 3, 3),
    AclCreation(2, "orders", 3, "User:alice", "10.1.2.3", 4, 3),
    AclCreation(2, "ord", 4, "User:bob", "*", 2, 2),
    AclCreation(5, "*", 3, "User:*", "*", 4, 3),
]
REMOVED = DeleteAclsFilter(2, "orders", 3, "User:alice", "*", 3, 3)


def scram(user: str, mechanism: int) -> ScramCredentialUpsertion:
    name = {1: "sha256", 2: "sha512"}[mechanism]
    salted = hashlib.pbkdf2_hmac(name, b"secret", b"salt", 4096)
    return ScramCredentialUpsertion(user, mechanism, 4096, b"salt", salted)


def quota(key: str, value: float | None, *entity: tuple[str, str | None]) -> EntryData:
    operation = OpData(key, value or 0.0, value is None)
    return EntryData([EntityData(*each) for each in entity], [operation])


def administer(client: WireClient) -> None:
    created = client.ask(CREATE_ACLS, CreateAclsRequest(ACLS), 3)
    assert {each.error_code for each in created.results} == {0}
    deleted = client.ask(DELETE_ACLS, DeleteAclsRequest([REMOVED]), 3)
    assert len(deleted.filter_results[0].matching_acls) == 1
    for request in (
        AlterUserScramCredentialsRequest([], [scram("alice", 1)]),
        AlterUserScramCredentialsRequest([], [scram("bob", 2)]),
        AlterUserScramCredentialsRequest([], [scram("gone", 1)]),
        AlterUserScramCredentialsRequest([ScramCredentialDeletion("gone", 1)], []),
    ):
        altered = client.ask(ALTER_USER_SCRAM_CREDENTIALS, request, 0)
        assert {each.error_code for each in altered.results} == {0}
    for entries in (
        [
            quota("producer_byte_rate", 1000.0, ("user", "alice")),
            quota("request_percentage", 12.5, ("user", None), ("client-id", "app")),
            quota("consumer_byte_rate", 5.0, ("client-id", None)),
            quota("connection_creation_rate", 7.0, ("ip", "10.0.0.1")),
        ],
        [quota("consumer_byte_rate", None, ("client-id", None))],
    ):
        answer = client.ask(ALTER_CLIENT_QUOTAS, AlterClientQuotasRequest(entries), 1)
        assert {each.error_code for each in answer.entries} == {0}


def seen(client: WireClient) -> tuple[Any, Any]:
    """Return the ACLs and quotas that a client sees."""
    acls = client.ask(DESCRIBE_ACLS, DescribeAclsRequest(1, None, 1, None, None, 1, 1), 3)
    assert acls.error_code == 0
    quotas = client.ask(DESCRIBE_CLIENT_QUOTAS, DescribeClientQuotasRequest(), 1)
    assert quotas.error_code == 0
    return (
        {
            (each.resource_type, each.resource_name, each.pattern_type, *vars_of(acl))
            for each in acls.resources
            for acl in each.acls
        },
        {
            (
                frozenset((part.entity_type, part.entity_name) for part in each.entity),
                value.key,
                value.value,
            )
            for each in quotas.entries
            for value in each.values
        },
    )


def has_snapshot(directory: Path) -> bool:
    """Whether there is one of what was written, beside the one that every directory begins with."""
    names = [path.name for path in directory.glob("__cluster_metadata-0/*.checkpoint")]
    return any(int(name.partition("-")[0]) > 0 for name in names)


def logins(port: int) -> dict[str, int]:
    """The error codes of the users' logins, each by its mechanism."""
    found = {}
    for user, mechanism in (
        ("alice", "SCRAM-SHA-256"),
        ("bob", "SCRAM-SHA-512"),
        ("gone", "SCRAM-SHA-256"),
    ):
        with Wire(None, (HOST, port)) as wire:
            _, last = wire.log_in_with_scram(user, "secret", mechanism)
            assert last is not None
            found[user] = last.error_code
    return found


def vars_of(acl: Any) -> tuple[Any, ...]:
    return acl.principal, acl.host, acl.operation, acl.permission_type


def administered(kafka: BrokerProcess) -> Any:
    """Change ACLs, users and quotas; return what a client sees of ACLs and quotas."""
    with WireClient(kafka) as client:
        administer(client)
        # Its controller answers a change a moment before the broker knows of it.
        wait_until(lambda: tuple(map(len, seen(client))) == (len(ACLS) - 1, 3), "it is known")
        return seen(client)


@pytest.mark.parametrize("snapshots", [True, False])
def test_users_acls_and_quotas_of_a_stopped_kafka(kafka, tmp_path, snapshots):
    interval = {"metadata_log_max_snapshot_interval_ms": "1"} if snapshots else {}
    case = f"snapshots-{snapshots}"
    stopped = kafka.stopped(case, administered, tmp_path, **CONTROLLED, **interval)
    directory = tmp_path / "data"
    found = read_kraft_metadata(LocalFileSystem(), str(directory))
    assert found is not None
    assert set(found.scram_credentials) == {("alice", 1), ("bob", 2)}
    assert has_snapshot(directory) == snapshots
    assert len(found.acls) == len(ACLS) - 1
    barnabas = stopped.open(Barnabas(tmp_path, node_id="1", **CONTROLLED))
    port = barnabas.listen("SASL_PLAINTEXT")
    barnabas.overrides["sasl.enabled.mechanisms"] = "SCRAM-SHA-256,SCRAM-SHA-512"
    with barnabas:
        with WireClient(barnabas) as client:
            assert plain(seen(client)) == stopped.observed
        assert logins(port) == {"alice": 0, "bob": 0, "gone": 58}
        barnabas.terminate()
        barnabas.start()
        with WireClient(barnabas) as client:
            assert plain(seen(client)) == stopped.observed


def test_migration_page_shows_the_log_of_a_takeover(kafka, tmp_path, caplog):
    caplog.set_level("INFO")
    stopped = kafka.stopped("snapshots-False", administered, tmp_path, **CONTROLLED)
    with stopped.open(Barnabas(tmp_path, node_id="1", **CONTROLLED)) as barnabas:
        logged = caplog.text if isinstance(barnabas, EmbeddedBarnabas) else barnabas.output()
    page = (ROOT / "docs" / "migration.md").read_text()
    (block,) = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    for line in block.splitlines():
        _, event = line.split(maxsplit=1)
        pattern = re.sub(r"\d+", r"\\d+", re.escape(event)).replace("/var/lib/kafka/data", r"\S+")
        assert re.search(pattern, logged), line


def test_properties_of_a_kafka_node_load_as_the_migration_page_says(tmp_path):
    """The controller's keys have no effect, and no key is unknown or refused."""
    kafka = ApacheKafka(tmp_path, **CONTROLLED)
    found = load_config(parse_properties(properties_text(kafka.properties() | kafka.overrides)))
    assert {"process.roles", "controller.quorum.voters"} <= {*found.ignored}
    assert found.unknown == ()
    assert found.config.log_dirs == (str(kafka.data_directory),)
    assert found.config.super_users == CONTROLLED["super_users"]
