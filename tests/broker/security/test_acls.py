"""Decisions about operations, against an oracle that is written straight from the rules."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.security.acls.acls import Acl, AclFilter, AclSet, Client, Verdict
from barnabas.broker.security.acls.operations import (
    ANY,
    IMPLIED_BY,
    MATCH,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

ALLOW, DENY = Permission.ALLOW, Permission.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
READ, WRITE, DESCRIBE, ALL = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL
TOPIC = ResourceType.TOPIC
ALICE = Client("User:alice", ip_address("10.1.2.3"))


def acl(
    permission=ALLOW,
    operation=READ,
    name="orders",
    pattern=LITERAL,
    principal="User:alice",
    host="*",
    resource_type=TOPIC,
):
    return Acl(resource_type, name, pattern, principal, host, operation, permission)


def verdict(acls, operation=READ, name="orders", client=ALICE):
    return AclSet(acls).decide(client, operation, TOPIC, name).verdict


@pytest.mark.parametrize(
    ("acls", "operation", "expected"),
    [
        ([], READ, Verdict.NO_ACLS),
        ([acl(name="other")], READ, Verdict.NO_ACLS),
        ([acl(resource_type=ResourceType.GROUP)], READ, Verdict.NO_ACLS),
        ([acl(principal="User:bob")], READ, Verdict.DENIED),
        ([acl()], READ, Verdict.ALLOWED),
        ([acl()], WRITE, Verdict.DENIED),
        ([acl()], DESCRIBE, Verdict.ALLOWED),
        ([acl(DENY), acl(name="*")], READ, Verdict.DENIED),
        # DENY of READ implies nothing about DESCRIBE.
        ([acl(DENY), acl(name="*")], DESCRIBE, Verdict.ALLOWED),
        ([acl(DENY, ALL), acl(name="*")], DESCRIBE, Verdict.DENIED),
        ([acl(operation=ALL)], WRITE, Verdict.ALLOWED),
        ([acl(principal="User:*")], READ, Verdict.ALLOWED),
        ([acl(name="ord", pattern=PREFIXED)], READ, Verdict.ALLOWED),
        ([acl(name="ordersX", pattern=PREFIXED)], READ, Verdict.NO_ACLS),
        # "*" is a wildcard in a literal pattern only.
        ([acl(name="*", pattern=PREFIXED)], READ, Verdict.NO_ACLS),
        ([acl(operation=Operation.ALTER_CONFIGS)], Operation.DESCRIBE_CONFIGS, Verdict.ALLOWED),
        ([acl(operation=Operation.ALTER_CONFIGS)], DESCRIBE, Verdict.DENIED),
    ],
)
def test_rules(acls, operation, expected):
    assert verdict(acls, operation) is expected
    assert verdict(acls[::-1], operation) is expected


@pytest.mark.parametrize(
    ("host", "client_host", "applies"),
    [
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.4", "10.1.2.3", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("11.0.0.0/8", "10.1.2.3", False),
        ("0:0:0:0:0:0:0:1", "::1", True),
        ("fe80::/10", "fe80::7", True),
        ("10.0.0.0/8", "::1", False),
        ("no.such.host", "10.1.2.3", False),
    ],
)
def test_hosts_are_addresses_and_networks(host, client_host, applies):
    client = Client("User:alice", ip_address(client_host))
    assert (verdict([acl(host=host)], client=client) is Verdict.ALLOWED) is applies


def test_a_client_without_an_address_is_met_by_no_host_but_every():
    client = Client("User:alice", None)
    assert verdict([acl(host="10.0.0.0/8")], client=client) is Verdict.DENIED
    assert verdict([acl()], client=client) is Verdict.ALLOWED


def test_the_acl_that_decided_is_named():
    allow, deny = acl(), acl(DENY, name="or", pattern=PREFIXED)
    assert AclSet([allow]).decide(ALICE, READ, TOPIC, "orders").acl == allow
    assert AclSet([allow, deny]).decide(ALICE, READ, TOPIC, "orders").acl == deny
    assert AclSet([allow]).decide(ALICE, WRITE, TOPIC, "orders").acl is None


def test_removing_one_acl_leaves_the_others_of_its_resource():
    # CVE-2024-27309: with one of several ACLs of a resource gone, the others did not count.
    acls = [acl(), acl(operation=WRITE), acl(principal="User:bob"), acl(DENY, DESCRIBE)]
    found = AclSet(acls)
    found.remove(acls[0])
    assert set(found) == set(acls[1:])
    assert found.decide(ALICE, WRITE, TOPIC, "orders").verdict is Verdict.ALLOWED
    assert found.decide(ALICE, DESCRIBE, TOPIC, "orders").verdict is Verdict.DENIED
    for each in acls[1:]:
        found.remove(each)
    assert found.decide(ALICE, WRITE, TOPIC, "orders").verdict is Verdict.NO_ACLS


@pytest.mark.parametrize(
    ("acls", "expected"),
    [
        ([], False),
        ([acl(operation=WRITE)], True),
        ([acl(operation=READ)], False),
        ([acl(operation=ALL, name="*")], True),
        ([acl(operation=WRITE), acl(DENY, WRITE)], False),
        ([acl(operation=WRITE), acl(DENY, WRITE, name="*")], False),
        ([acl(operation=WRITE), acl(DENY, ALL, name="ord", pattern=PREFIXED)], False),
        ([acl(operation=WRITE, name="*"), acl(DENY, WRITE)], True),
        ([acl(operation=WRITE, name="ord", pattern=PREFIXED), acl(DENY, WRITE)], True),
        (
            [
                acl(operation=WRITE, name="ord", pattern=PREFIXED),
                acl(DENY, WRITE, name="o", pattern=PREFIXED),
            ],
            False,
        ),
        ([acl(operation=WRITE), acl(DENY, WRITE, principal="User:bob")], True),
    ],
)
def test_some_resource_may_be_written_kip_679(acls, expected):
    assert AclSet(acls).allows_some(ALICE, WRITE, TOPIC) is expected


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (AclFilter(), {"orders", "or", "*"}),
        (AclFilter(name="orders"), {"orders"}),
        (AclFilter(name="orders", pattern=MATCH), {"orders", "or", "*"}),
        (AclFilter(name="o", pattern=MATCH), {"*"}),
        (AclFilter(pattern=PREFIXED), {"or"}),
        (AclFilter(name="", pattern=ANY), set()),
        (AclFilter(principal="User:bob"), set()),
        (AclFilter(operation=99), set()),
        (AclFilter(resource_type=ResourceType.GROUP), set()),
    ],
)
def test_filters(wanted, names):
    acls = AclSet([acl(), acl(name="or", pattern=PREFIXED), acl(name="*")])
    assert {each.name for each in acls.matching(wanted)} == names


# ------------------------------------------------------------------------------------- the oracle

NAMES = st.sampled_from(["a", "ab", "abc", "b", "*", "bc"])
ACLS = st.builds(
    Acl,
    st.just(TOPIC),
    NAMES,
    st.sampled_from(PatternType),
    st.sampled_from(["User:alice", "User:bob", "User:*"]),
    st.sampled_from(["*", "10.0.0.0/8", "10.1.2.3", "11.1.1.1"]),
    st.sampled_from([READ, WRITE, DESCRIBE, ALL]),
    st.sampled_from(Permission),
)


def applies(each, name):
    if each.pattern == PREFIXED:
        return name.startswith(each.name)
    return each.name in {name, "*"}


def oracle(acls, operation, name):
    relevant = [each for each in acls if applies(each, name)]
    if not relevant:
        return Verdict.NO_ACLS
    mine = [
        each
        for each in relevant
        if each.principal in {"User:alice", "User:*"} and each.host != "11.1.1.1"
    ]
    if any(e.permission == DENY and e.operation in {operation, ALL} for e in mine):
        return Verdict.DENIED
    allowing = {operation, ALL} | IMPLIED_BY.get(operation, frozenset())
    if any(e.permission == ALLOW and e.operation in allowing for e in mine):
        return Verdict.ALLOWED
    return Verdict.DENIED


@pytest.mark.hypothesis
@given(
    st.lists(ACLS, max_size=12),
    st.lists(ACLS, max_size=4),
    st.sampled_from([READ, WRITE, DESCRIBE]),
    NAMES,
)
def test_decisions_are_those_of_the_rules(acls, removed, operation, name):
    found = AclSet([*acls, *removed])
    for each in set(removed):
        found.remove(each)
    left = [each for each in acls if each not in removed]
    assert found.decide(ALICE, operation, TOPIC, name).verdict is oracle(left, operation, name)
