"""One row of the table of routes (broker/console/routes.py)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeAlias

from barnabas.broker.api.checks import (
    CLUSTER,
    CLUSTER_DENIED,
    DESCRIBE,
    GROUP,
    GROUP_DENIED,
    TOPIC,
    TOPIC_DENIED,
    TRANSACTIONAL_ID,
    TRANSACTIONAL_ID_DENIED,
    Check,
    Denial,
    denied,
)
from barnabas.broker.console.parameters import Parameter
from barnabas.broker.console.questions import Question
from barnabas.broker.security.acls.access import Access
from barnabas.broker.security.acls.operations import CLUSTER_NAME, Operation, ResourceType

_DOTS: Final = re.compile(r"~+\.{1,2}")

_CHECKED: Final = {
    CLUSTER: ("", CLUSTER_DENIED),
    GROUP: ("group", GROUP_DENIED),
    TOPIC: ("topic", TOPIC_DENIED),
    TRANSACTIONAL_ID: ("transactional_id", TRANSACTIONAL_ID_DENIED),
}
"""Name of a resource in paths and bodies, and the error without permission."""

Answering: TypeAlias = Callable[[Question], Awaitable[object]]


def is_name(expected: str) -> bool:
    """Return whether a part of a template is a name in braces."""
    return expected.startswith("{")


def parts_of(template: str) -> tuple[str, ...]:
    """Return a template, divided as a request's path is."""
    return tuple(template.strip("/").split("/"))


def names_in(pattern: tuple[str, ...], parts: tuple[str, ...]) -> dict[str, str] | None:
    """Return the names in a path, or None if it does not match the pattern."""
    if len(pattern) != len(parts):
        return None
    pairs = list(zip(pattern, parts, strict=True))
    if not all(is_name(expected) or expected == part for expected, part in pairs):
        return None
    return {expected[1:-1]: _plain(part) for expected, part in pairs if is_name(expected)}


def _plain(part: str) -> str:
    """Return the original name: "." and ".." are written with a "~" before them, and so is "~.".

    Browsers remove them otherwise, even percent-encoded (URL Standard, double-dot path segments). A
    client that sends them unchanged means them, too.
    """
    return part[1:] if _DOTS.fullmatch(part) else part


def required(
    kind: ResourceType,
    operation: Operation = DESCRIBE,
    *or_else: tuple[Operation, ResourceType],
) -> Check:
    """Return the check of a whole request for the resource that it names, or for the cluster."""
    return Check(operation, kind, *_CHECKED[kind], Denial.REQUEST, or_else)


def visible(kind: ResourceType, operation: Operation = DESCRIBE) -> Check:
    """Return the check of each row of a list, which leaves out the others."""
    return Check(operation, kind, *_CHECKED[kind], Denial.LEFT_OUT)


@dataclass(frozen=True, slots=True)
class Route:
    """One row: a path that is only read."""

    template: str
    summary: str
    answering: Answering
    shape: type
    """Shape of the response: JSON, or bytes."""
    check: Check
    """Required permission: for the whole request, or for each row of a list."""
    parameters: tuple[Parameter, ...] = ()
    watched: str = ""
    """Name in a stream (broker/console/live.py), or empty if the route cannot be watched: a view of
    everything is too much for every second."""
    watched_query: Mapping[str, str] = field(default_factory=dict)
    """The parameters then."""

    method: ClassVar = "GET"

    @property
    def name_in_path(self) -> str:
        """Name of the resource in the path, or empty."""
        return next((each[1:-1] for each in self.parts if is_name(each)), "")

    @property
    def parts(self) -> tuple[str, ...]:
        """The template, divided as a request's path is."""
        return parts_of(self.template)

    def check_allowed(self, access: Access, names: Mapping[str, str]) -> None:
        """Raise KafkaError if the client lacks the permission."""
        check = self.check
        if check.denial is Denial.REQUEST:
            name = names[check.name] if check.name else CLUSTER_NAME
            if not access.may(check.operation, check.resource_type, name):
                raise denied(check.code, check.operation, check.resource_type, name)
