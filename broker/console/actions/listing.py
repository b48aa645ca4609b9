"""The actions, and the permissions of a user for one resource."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.broker.console.actions.table import ACTIONS, KINDS, Action
from barnabas.broker.console.shapes import Wide
from barnabas.broker.security.acls.operations import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.broker.console.questions import Question


@dataclass(frozen=True, slots=True)
class FieldOfAction:
    """A field of an action's body."""

    name: str
    title: str
    kind: str
    doc: str
    required: bool
    choices: tuple[str, ...]
    default: str | None


@dataclass(frozen=True, slots=True)
class ActionRow:
    """An action, as a page needs it to draw a form."""

    action: str
    title: str
    method: str
    path: str
    resource: str
    """Kind of the resource, or empty for the broker."""
    needs: str
    destructive: bool
    fields: tuple[FieldOfAction, ...]
    one_of: tuple[str, ...]
    """Fields of which the request needs exactly one, or none."""


@dataclass(frozen=True, slots=True)
class ActionList:
    """All actions."""

    as_of: Wide
    items: tuple[ActionRow, ...]


@dataclass(frozen=True, slots=True)
class Permission:
    """Permission of a user for one action."""

    action: str
    allowed: bool
    reason: str | None
    """Reason for a denial."""


@dataclass(frozen=True, slots=True)
class PermissionList:
    """Permissions of a user."""

    as_of: Wide
    items: tuple[Permission, ...]


async def list_actions(question: Question) -> ActionList:
    """List all actions."""
    return ActionList(question.now_ms, tuple(map(_row, ACTIONS)))


def _row(action: Action) -> ActionRow:
    check = action.check
    return ActionRow(
        action.name,
        action.title,
        action.method,
        action.template,
        action.kind,
        f"{shown(check.operation)} on {shown(check.resource_type)}",
        action.is_destructive,
        tuple(
            FieldOfAction(f.name, f.title, f.kind, f.doc, f.required, f.choices, f.default)
            for f in action.fields
        ),
        action.one_of,
    )


async def list_allowed(question: Question) -> PermissionList:
    """Return the permission for every action on the named resource or, without one, on the
    broker.
    """
    given = {kind: question.text(kind) for kind in KINDS if question.values.get(kind) is not None}
    found = []
    for action in ACTIONS:
        if not action.kind or action.kind in given:
            reason = question.broker.changes_refused or _denial(question, action, given)
            found.append(Permission(action.name, reason is None, reason))
    return PermissionList(question.now_ms, tuple(found))


def _denial(question: Question, action: Action, given: Mapping[str, str]) -> str | None:
    """Return the reason for a denial.

    For a resource that is to be created, and has no name yet, permission for any name is enough.
    """
    check, access = action.check, question.access
    if check.name and check.name not in given:
        kinds = ((check.operation, check.resource_type), *check.or_else)
        if any(access.may_some(operation, kind) for operation, kind in kinds):
            return None
    return action.denial(access, action.resource(given, {}))
