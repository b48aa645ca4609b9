"""An action from its request to its effect: permission, preview, confirmation, change, audit.

Rules of this file:

* **Each change is planned first**: the plan of a dry run is repeated before the change, and
  finds the errors of a request.
* An irreversible action repeats the name and the previewed state of its resource; it is refused
  if that state has changed.
* Every change is written to the audit log with its result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.console.actions.command import Command, Conflict, invalid
from barnabas.broker.console.actions.effect import Effect, Plan, with_old_names
from barnabas.broker.console.actions.fields import BASED_ON, CONFIRM, read_fields
from barnabas.broker.console.actions.table import ACTIONS, Action
from barnabas.broker.console.pacing import Pace
from barnabas.broker.console.parameters import Parameter, read_query
from barnabas.broker.console.route import names_in
from barnabas.broker.security.acls.operations import CLUSTER_NAME, shown
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.admin.observed import ObservedBroker
    from barnabas.broker.console.jobs.registry import Jobs
    from barnabas.broker.console.records.pieces import RecordReaders
    from barnabas.broker.security.acls.access import Access

PARAMETERS: Final = (
    Parameter("dry_run", "Whether to say only what would be done.", bool, default=False),
)


class Found(NamedTuple):
    """An action, with the names in the path of its request."""

    action: Action
    names: dict[str, str]


class Asked(NamedTuple):
    """User and parameters of a request."""

    access: Access
    query: Mapping[str, str]
    body: Mapping[str, object]


def find(method: str, parts: tuple[str, ...]) -> Found | None:
    """Return the action of a path."""
    for action in ACTIONS:
        names = names_in(action.parts, parts) if action.method == method else None
        if names is not None:
            return Found(action, names)
    return None


def methods_of(parts: tuple[str, ...]) -> list[str]:
    """Return the methods of the actions at a path."""
    return sorted({each.method for each in ACTIONS if find(each.method, parts) is not None})


async def perform(
    found: Found, broker: ObservedBroker, given: Asked, jobs: Jobs, readers: RecordReaders
) -> Effect:
    """Perform an action, or return its effect only; raises KafkaError, Conflict."""
    action, names = found
    access, query, body = given
    is_dry = bool(read_query(PARAMETERS, query)["dry_run"])
    values = read_fields(action.fields, body)
    resource = action.resource(names, values)
    _check_allowed(found, broker, access, resource)
    command = Command(broker, access, names, values, Pace(), jobs, readers, is_dry)
    plan = await action.planning(command)
    if not is_dry:
        try:
            _check_confirmed(found, plan, body)
            plan = await action.doing(command, plan) or plan
        except KafkaError as error:
            _note(found, broker, access, resource, f"{error.code.name}: {error.message}")
            raise
        except Conflict:
            _note(found, broker, access, resource, "refused: the object changed after the preview")
            raise
        _note(found, broker, access, resource, f"done: {plan.summary}")
    return Effect(
        broker.clock.now_ms(),
        action.name,
        resource,
        is_dry,
        plan.based_on,
        plan.summary,
        with_old_names(plan.figures),
        plan.changes,
    )


def _check_allowed(found: Found, broker: ObservedBroker, access: Access, resource: str) -> None:
    if broker.changes_refused is not None:
        _note(found, broker, access, resource, broker.changes_refused)
        raise KafkaError(ErrorCode.POLICY_VIOLATION, broker.changes_refused)
    action = found.action
    check = action.check
    others = ((operation, kind, CLUSTER_NAME) for operation, kind in check.or_else)
    if not access.may_either((check.operation, check.resource_type, resource), *others):
        raise KafkaError(check.code, action.denial(access, resource))


def _check_confirmed(found: Found, plan: Plan, body: Mapping[str, object]) -> None:
    action, names = found
    if not action.is_destructive:
        return
    if body.get(CONFIRM) != action.confirmed_as(names):
        raise invalid(f"{CONFIRM}: is to be the name of what it is done to")
    if BASED_ON not in body:
        raise invalid(f"{BASED_ON}: missing; a dry run says it")
    if body[BASED_ON] != plan.based_on:
        raise Conflict


def _note(found: Found, broker: ObservedBroker, access: Access, resource: str, result: str) -> None:
    kind = shown(found.action.check.resource_type)
    broker.audit.changed(
        access.principal, access.host, found.action.name, f"{kind}:{resource}", result
    )
