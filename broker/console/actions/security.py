"""Users, ACLs and quotas: set and taken away, by the requests of Kafka's own tools."""

from __future__ import annotations

from dataclasses import astuple
from functools import partial
from typing import Final

from barnabas.broker.console.actions.command import Command, invalid
from barnabas.broker.console.actions.effect import Change, Plan
from barnabas.broker.console.actions.wire import check
from barnabas.broker.console.pages.security import DEFAULT, acls_of, quotas_of, users_of
from barnabas.broker.console.shapes_security import AclRow
from barnabas.broker.security.acls.operations import (
    ASKED_BESIDES,
    CLUSTER_NAME,
    SUPPORTED,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    shown,
)
from barnabas.broker.security.quotas.quota_limits import CLIENT_ID, IP, USER
from barnabas.broker.security.sasl.scram_users import new_salt
from barnabas.protocol.errors import ErrorCode, KafkaError
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
from barnabas.protocol.messages.delete_acls import (
    DELETE_ACLS,
    DeleteAclsFilter,
    DeleteAclsRequest,
)
from barnabas.protocol.sasl.scram import (
    ITERATIONS_MIN,
    MECHANISMS,
    SCRAM_SHA_512,
    salted_password,
)

MECHANISM_NAMES: Final = tuple(MECHANISMS)
MECHANISM_DEFAULT: Final = SCRAM_SHA_512.name
PERMISSIONS: Final = tuple(shown(each) for each in (Permission.ALLOW, Permission.DENY))
OPERATIONS: Final = tuple(shown(each) for each in Operation)
PATTERNS: Final = tuple(shown(each) for each in PatternType)
_RESOURCE_TYPES: Final = {shown(each): each for each in SUPPORTED}
RESOURCE_TYPES: Final = tuple(_RESOURCE_TYPES)
EVERYWHERE: Final = "*"
_PRINCIPAL: Final = "User:"


# ------------------------------------------------------------------------------------------ users


async def plan_set_user(command: Command) -> Plan:
    """Return whether the action would create the user or change the password."""
    name, mechanism = command.text("user"), command.text("mechanism", MECHANISM_DEFAULT)
    before = await _mechanisms(command, name)
    if not name or not command.text("password"):
        raise invalid("user, password: neither can be empty")
    after = ", ".join(sorted({*before, mechanism}))
    words = f"give {name} another password" if mechanism in before else f"let {name} log in"
    return Plan(words, {}, (Change(name, ", ".join(before) or None, after, "how to log in"),))


async def set_user(command: Command, _: Plan) -> None:
    """Store the verifier of a password; sessions with the previous password end."""
    mechanism = MECHANISMS[command.text("mechanism", MECHANISM_DEFAULT)]
    salt, count = new_salt(), ITERATIONS_MIN
    work = partial(salted_password, mechanism, command.text("password"), salt, count)
    salted = await command.readers.run(work)
    name = command.text("user")
    upsertion = ScramCredentialUpsertion(name, mechanism.number, count, salt, salted)
    await _alter_user(command, AlterUserScramCredentialsRequest([], [upsertion]))


async def plan_delete_user(command: Command) -> Plan:
    """Return the user that would be deleted."""
    name = command.names["user"]
    found = await _mechanisms(command, name)
    if not found:
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, f"user {name} has no SCRAM credential")
    change = Change(name, ", ".join(found), None, "sessions end at once")
    return Plan(f"delete the user {name}", {"credentials": len(found)}, (change,), (name, *found))


async def delete_user(command: Command, _: Plan) -> None:
    """Delete all credentials of a user."""
    name = command.names["user"]
    for each in await _mechanisms(command, name):
        deletion = ScramCredentialDeletion(name, MECHANISMS[each].number)
        await _alter_user(command, AlterUserScramCredentialsRequest([deletion], []))


async def _mechanisms(command: Command, name: str) -> tuple[str, ...]:
    users = await users_of(command.wire)
    return next((each.mechanisms for each in users if each.name == name), ())


async def _alter_user(command: Command, request: AlterUserScramCredentialsRequest) -> None:
    """Change one credential; raises KafkaError if the broker refuses."""
    for each in (await command.wire.ask(ALTER_USER_SCRAM_CREDENTIALS, request)).results:
        check(each.error_code, each.error_message)


# ------------------------------------------------------------------------------------------- ACLs


async def plan_create_acl(command: Command) -> Plan:
    """Return the ACL that would be created; an ACL without any effect is refused."""
    acl = _acl(command, command.text("principal"))
    kind, operation = _RESOURCE_TYPES[acl.resource_type], Operation[acl.operation]
    known = (Operation.ALL, *SUPPORTED[kind])
    if operation not in known and (operation, kind) not in ASKED_BESIDES:
        names = ", ".join(shown(each) for each in known)
        raise invalid(f"operation: not an operation on a {acl.resource_type}: {names}")
    if not acl.principal.startswith(_PRINCIPAL):
        raise invalid(f"principal: expected {_PRINCIPAL}NAME")
    if kind is ResourceType.CLUSTER and acl.name != CLUSTER_NAME:
        raise invalid(f"name: the cluster is called {CLUSTER_NAME}")
    is_there = acl in await acls_of(command.wire)
    note = "it is there already" if is_there else None
    return Plan(_words("make", acl), {}, (Change(acl.principal, None, _acl_text(acl), note),))


async def create_acl(command: Command, _: Plan) -> None:
    """Create an ACL."""
    acl = _acl(command, command.text("principal"))
    request = CreateAclsRequest([AclCreation(*_as_asked(acl))])
    for each in (await command.wire.ask(CREATE_ACLS, request)).results:
        check(each.error_code, each.error_message)


async def plan_delete_acl(command: Command) -> Plan:
    """Return the ACL that would be deleted."""
    acl = _acl(command, command.names["principal"])
    if acl not in await acls_of(command.wire):
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, f"no such ACL exists for {acl.principal}")
    change = Change(acl.principal, _acl_text(acl), None, None)
    return Plan(_words("take away", acl), {"rules": 1}, (change,), astuple(acl))


async def delete_acl(command: Command, _: Plan) -> None:
    """Delete exactly one ACL."""
    acl = _acl(command, command.names["principal"])
    request = DeleteAclsRequest([DeleteAclsFilter(*_as_asked(acl))])
    for each in (await command.wire.ask(DELETE_ACLS, request)).filter_results:
        check(each.error_code, each.error_message)


def _as_asked(
    acl: AclRow,
) -> tuple[ResourceType, str, PatternType, str, str, Operation, Permission]:
    """Return an ACL in the form of the requests that create and delete it."""
    return (
        _RESOURCE_TYPES[acl.resource_type],
        acl.name,
        PatternType[acl.pattern],
        acl.principal,
        acl.host,
        Operation[acl.operation],
        Permission[acl.permission],
    )


def _acl(command: Command, principal: str) -> AclRow:
    return AclRow(
        principal,
        command.text("permission", PERMISSIONS[0]),
        command.text("operation"),
        command.text("resource_type"),
        command.text("name"),
        command.text("pattern", PATTERNS[0]),
        command.text("host", EVERYWHERE),
    )


def _acl_text(acl: AclRow) -> str:
    return (
        f"{acl.permission} {acl.operation} on {acl.resource_type}:{acl.pattern}:{acl.name} "
        f"from {acl.host}"
    )


def _words(verb: str, acl: AclRow) -> str:
    return f"{verb} a rule for {acl.principal}: {_acl_text(acl)}"


# ----------------------------------------------------------------------------------------- quotas


async def plan_set_quota(command: Command) -> Plan:
    """Return the quotas that would change, with old and new values."""
    wanted = _limits(command)
    await _alter_quota(command, validate_only=True)
    entity = _entity(command)
    before = {
        each.key: each.value
        for each in await quotas_of(command.wire)
        if (each.user, each.client_id, each.ip)
        == tuple(entity.get(k) for k in (USER, CLIENT_ID, IP))
    }
    whose = " ".join(f"{kind}={name}" for kind, name in entity.items())
    changes = tuple(
        Change(key, _number(before.get(key)), _number(value), None) for key, value in wanted.items()
    )
    return Plan(f"set limits of {whose}", {"limits": len(changes)}, changes)


async def set_quota(command: Command, _: Plan) -> None:
    """Set some quotas and remove others."""
    await _alter_quota(command, validate_only=False)


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:g}" if value < 1e6 else str(int(value))


def _entity(command: Command) -> dict[str, str]:
    entity = {kind.replace("-", "_"): kind for kind in (USER, CLIENT_ID, IP)}
    found = {kind: command.text(field) for field, kind in entity.items() if command.text(field)}
    if not found:
        raise invalid("user, client_id, ip: whose limits?")
    return found


def _limits(command: Command) -> dict[str, float | None]:
    limits: dict[str, float | None] = {}
    for key, text in command.entries("limits").items():
        try:
            limits[key] = None if text is None else float(text)
        except ValueError:
            raise invalid(f"limits: {key}: no number") from None
    if not limits:
        raise invalid("limits: name at least one quota")
    return limits


async def _alter_quota(command: Command, *, validate_only: bool) -> None:
    entity = [
        EntityData(kind, None if name == DEFAULT else name)
        for kind, name in _entity(command).items()
    ]
    changes = [
        OpData(key, remove=True) if value is None else OpData(key, value)
        for key, value in _limits(command).items()
    ]
    request = AlterClientQuotasRequest([EntryData(entity, changes)], validate_only)
    for each in (await command.wire.ask(ALTER_CLIENT_QUOTAS, request)).entries:
        check(each.error_code, each.error_message)
