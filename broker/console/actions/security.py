"""Users, ACLs and quotas: created and deleted by the requests of Kafka's own tools."""

from __future__ import annotations

from functools import partial
from typing import Final

from barnabas.broker.admin import acls, quotas, users
from barnabas.broker.admin.quotas import Entity, Quota
from barnabas.broker.console.actions.command import Command, invalid
from barnabas.broker.console.actions.effect import Change, Plan
from barnabas.broker.security.acls.acls import EVERYWHERE, Acl, AclFilter
from barnabas.broker.security.acls.operations import (
    CLUSTER_NAME,
    SUPPORTED,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    shown,
)
from barnabas.broker.security.quotas.quota_limits import ENTITY_TYPES
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.sasl.scram import MECHANISMS, SCRAM_SHA_512

MECHANISM_NAMES: Final = tuple(MECHANISMS)
MECHANISM_DEFAULT: Final = SCRAM_SHA_512.name
PERMISSIONS: Final = tuple(shown(each) for each in (Permission.ALLOW, Permission.DENY))
OPERATIONS: Final = tuple(shown(each) for each in Operation)
PATTERNS: Final = tuple(shown(each) for each in PatternType)
_RESOURCE_TYPES: Final = {shown(each): each for each in SUPPORTED}
RESOURCE_TYPES: Final = tuple(_RESOURCE_TYPES)
_PRINCIPAL: Final = "User:"


# ------------------------------------------------------------------------------------------ users


async def plan_set_user(command: Command) -> Plan:
    """Return whether the action would create the user or change the password."""
    name, mechanism = command.text("user"), command.text("mechanism", MECHANISM_DEFAULT)
    if not name or not command.text("password"):
        raise invalid("user, password: neither can be empty")
    before = await _mechanisms(command, name)
    after = ", ".join(sorted({*before, mechanism}))
    words = (
        f"change the password of {name}"
        if mechanism in before
        else f"create the credential of {name}"
    )
    return Plan(words, {}, (Change(name, ", ".join(before) or None, after, "SCRAM mechanisms"),))


async def set_user(command: Command, _: Plan) -> None:
    """Store a credential that verifies the password; sessions with another password end."""
    name, mechanism = command.text("user"), command.text("mechanism", MECHANISM_DEFAULT)
    work = partial(users.credential_of, name, mechanism, command.text("password"))
    await command.wire.run(users.set_credential(await command.readers.run(work)))


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
        await command.wire.run(users.delete_credential(name, each))


async def _mechanisms(command: Command, name: str) -> tuple[str, ...]:
    return tuple((await command.wire.run(users.list_users([name]))).get(name, ()))


# ------------------------------------------------------------------------------------------- ACLs


async def plan_create_acl(command: Command) -> Plan:
    """Return the ACL that would be created; an ACL without any effect is refused."""
    acl = _acl(command, command.text("principal"))
    if not acls.is_possible(acl):
        names = ", ".join(map(shown, acls.operations_on(acl.resource_type)))
        raise invalid(f"operation: not an operation on a {shown(acl.resource_type)}: {names}")
    if not acl.principal.startswith(_PRINCIPAL):
        raise invalid(f"principal: expected {_PRINCIPAL}NAME")
    if acl.resource_type is ResourceType.CLUSTER and acl.name != CLUSTER_NAME:
        raise invalid(f"name: the cluster is called {CLUSTER_NAME}")
    note = "this ACL exists" if await _is_there(command, acl) else None
    return Plan(_words("add", acl), {}, (Change(acl.principal, None, _acl_text(acl), note),))


async def create_acl(command: Command, _: Plan) -> None:
    """Add an ACL."""
    await command.wire.run(acls.create_acls([_acl(command, command.text("principal"))]))


async def plan_delete_acl(command: Command) -> Plan:
    """Return the ACL that would be deleted."""
    acl = _acl(command, command.names["principal"])
    if not await _is_there(command, acl):
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, f"no such ACL exists for {acl.principal}")
    change = Change(acl.principal, _acl_text(acl), None, None)
    return Plan(_words("delete", acl), {"acls": 1}, (change,), acl)


async def delete_acl(command: Command, _: Plan) -> None:
    """Delete exactly one ACL."""
    await command.wire.run(acls.delete_acls([_acl(command, command.names["principal"])]))


async def _is_there(command: Command, acl: Acl) -> bool:
    return acl in await command.wire.run(acls.list_acls(AclFilter()))


def _acl(command: Command, principal: str) -> Acl:
    return Acl(
        _RESOURCE_TYPES[command.text("resource_type")],
        command.text("name"),
        PatternType[command.text("pattern", PATTERNS[0])],
        principal,
        command.text("host", EVERYWHERE),
        Operation[command.text("operation")],
        Permission[command.text("permission", PERMISSIONS[0])],
    )


def _acl_text(acl: Acl) -> str:
    resource = f"{shown(acl.resource_type)}:{shown(acl.pattern)}:{acl.name}"
    return f"{shown(acl.permission)} {shown(acl.operation)} on {resource} from {acl.host}"


def _words(verb: str, acl: Acl) -> str:
    return f"{verb} an ACL for {acl.principal}: {_acl_text(acl)}"


# ----------------------------------------------------------------------------------------- quotas


async def plan_set_quota(command: Command) -> Plan:
    """Return the quotas that would change, with old and new values."""
    wanted = _limits(command)
    await set_quota(command, dry_run=True)
    entity = _entity(command)
    found = await command.wire.run(quotas.list_quotas(entity, strict=True))
    before = found[0].limits if found else {}
    whose = Quota(entity, before).text
    changes = tuple(
        Change(key, _number(before.get(key)), _number(value), None) for key, value in wanted.items()
    )
    return Plan(f"set quotas of {whose}", {"quotas": len(changes)}, changes)


async def set_quota(command: Command, _: Plan | None = None, *, dry_run: bool = False) -> None:
    """Set quotas, and remove others."""
    entity, limits = _entity(command), _limits(command)
    await command.wire.run(quotas.alter_quotas(entity, limits, dry_run=dry_run))


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:g}" if value < 1e6 else str(int(value))


def _entity(command: Command) -> Entity:
    names = ((kind, command.text(kind.replace("-", "_"))) for kind in ENTITY_TYPES)
    found = {kind: None if name == quotas.DEFAULT else name for kind, name in names if name}
    if not found:
        raise invalid("user, client_id, ip: name the entity of the quotas")
    return found


def _limits(command: Command) -> dict[str, float | None]:
    limits: dict[str, float | None] = {}
    for key, text in command.entries("limits").items():
        try:
            limits[key] = None if text is None else float(text)
        except ValueError:
            raise invalid(f"limits: {key}: not a number: {text}") from None
    if not limits:
        raise invalid("limits: name at least one quota")
    return limits
