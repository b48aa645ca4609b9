"""Cached permissions of a session, and their invalidation."""

import pytest

from barnabas.broker.metadata.access_rules import AccessRules
from barnabas.broker.metadata.changes import Changes
from barnabas.broker.security.acls import access as module
from barnabas.broker.security.acls.access import OPEN, Access, Generation
from barnabas.broker.security.acls.acls import Acl, AclFilter
from barnabas.broker.security.acls.authorizer import Authorizer
from barnabas.broker.security.acls.operations import (
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore

TOPIC = ResourceType.TOPIC
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE


class Notes:
    """Audit that keeps the decisions."""

    def __init__(self):
        self.decisions = []

    def decided(self, principal, host, operation, resource_type, name, *, allowed, rule):
        self.decisions.append((operation, name, allowed, rule))


@pytest.fixture
def store():
    store = SqliteMetaStore.open(MEMORY, node_id=1, new_cluster_id="x" * 22)
    yield store
    store.close()


@pytest.fixture
def notes():
    return Notes()


@pytest.fixture
def authorizer(notes):
    return Authorizer(Generation(), ["User:admin"], notes, allows_without_acls=False)


def allow(name, operation=READ, permission=Permission.ALLOW, principal="User:alice"):
    return Acl(TOPIC, name, PatternType.LITERAL, principal, "*", operation, permission)


def session(authorizer, principal="User:alice"):
    return Access(principal, "10.0.0.1", authorizer, authorizer._generation)


def test_without_access_control_everything_is_allowed():
    assert OPEN.is_open
    assert OPEN.may(WRITE, TOPIC, "any")
    assert OPEN.may_some(WRITE, TOPIC)
    assert OPEN.operations_on(TOPIC, "any") == 3576
    assert OPEN.operations_on(ResourceType.GROUP, "any") == 3400
    assert OPEN.operations_on(ResourceType.CLUSTER, "kafka-cluster") == 8096


def test_a_change_counts_at_once_for_what_was_allowed_and_for_what_was_not(authorizer):
    access = session(authorizer)
    assert not access.may(READ, TOPIC, "orders")
    authorizer.change([allow("orders")], [])
    assert access.may(READ, TOPIC, "orders")
    assert access.may(READ, TOPIC, "orders")
    authorizer.change([], [allow("orders")])
    assert not access.may(READ, TOPIC, "orders")


async def test_stored_acls_are_in_force_after_restart(authorizer, store, notes):
    rules = AccessRules(authorizer, store, Changes(store, pytest.fail))
    await rules.add([allow("orders"), allow("orders"), allow("x", WRITE)])
    version = store.version
    await rules.add([allow("orders")])
    assert await rules.remove([AclFilter(name="none")], 1) == [[]]
    assert store.version == version, "nothing was to be done"
    assert await rules.remove([AclFilter(operation=WRITE)], 1) == [[allow("x", WRITE)]]
    assert list(authorizer.acls) == [allow("orders")]
    again = Authorizer(Generation(), [], notes, allows_without_acls=False)
    again.load(store.load().acls)
    assert list(again.acls) == [allow("orders")]
    assert again.matching(AclFilter()) == [allow("orders")]


def test_only_what_is_allowed_is_remembered_and_not_without_end(authorizer, monkeypatch):
    monkeypatch.setattr(module, "REMEMBERED_NAMES_MAX", 3)
    authorizer.change([allow("*")], [])
    access = session(authorizer)
    for number in range(10):
        assert access.may(READ, TOPIC, f"t{number}")
        assert not access.may(WRITE, TOPIC, f"t{number}")
    assert sum(map(len, access._allowed.values())) <= 3


def test_super_user_overrides_deny_acls(authorizer):
    authorizer.change([allow("*", Operation.ALL, Permission.DENY, "User:*")], [])
    admin, alice = session(authorizer, "User:admin"), session(authorizer)
    assert admin.may(WRITE, TOPIC, "t")
    assert admin.may_some(WRITE, TOPIC)
    assert not alice.may(WRITE, TOPIC, "t")
    assert not alice.may_some(WRITE, TOPIC)
    # The case counts: Kafka has no such user either.
    assert not session(authorizer, "user:admin").may(WRITE, TOPIC, "t")


def test_where_there_is_no_acl_a_setting_decides(notes):
    lenient = Authorizer(Generation(), [], notes, allows_without_acls=True)
    access = session(lenient)
    assert access.may(WRITE, TOPIC, "t")
    assert access.may_some(WRITE, TOPIC)
    lenient.change([allow("t", READ, principal="User:bob")], [])
    assert not access.may(WRITE, TOPIC, "t")
    assert access.may(WRITE, TOPIC, "u")


def test_decisions_are_noted_but_for_what_is_only_left_out(authorizer, notes):
    authorizer.change([allow("orders")], [])
    access = session(authorizer)
    access.may(READ, TOPIC, "orders")
    access.may(READ, TOPIC, "orders")  # Remembered: noted once.
    access.may(WRITE, TOPIC, "orders")
    access.may_see(TOPIC, "hidden")
    assert [(name, allowed) for _, name, allowed, _ in notes.decisions] == [
        ("orders", True),
        ("orders", False),
    ]
    assert notes.decisions[0][3] == "ALLOW READ LITERAL:orders User:alice from *"
    assert notes.decisions[1][3] == "not allowed by any ACL"


def test_denial_is_noted_in_the_same_words_without_any_acl(authorizer, notes):
    assert not session(authorizer).may(WRITE, TOPIC, "orders")
    assert notes.decisions[0][3] == "not allowed by any ACL"


def test_permission_by_a_setting_is_noted_as_such(notes):
    lenient = Authorizer(Generation(), [], notes, allows_without_acls=True)
    assert session(lenient).may(WRITE, TOPIC, "t")
    assert notes.decisions[0][3] == "no ACL applies"


def test_operations_are_bits_kip_430(authorizer):
    authorizer.change([allow("t", READ), allow("t", Operation.ALTER_CONFIGS)], [])
    bits = session(authorizer).operations_on(TOPIC, "t")
    wanted = (READ, DESCRIBE, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS)
    assert bits == sum(1 << each for each in wanted)


def test_a_mark_stands_for_one_client_at_one_time(authorizer):
    alice, again = session(authorizer), session(authorizer)
    assert OPEN.mark == module.OPEN_MARK
    assert len({OPEN.mark, alice.mark, again.mark}) == 3
    before = alice.mark
    assert alice.mark == before
    authorizer.change([allow("t")], [])
    assert alice.mark not in {before, again.mark}
