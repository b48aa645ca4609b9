"""Write docs/http-api.md from the routes of the HTTP port: ``make docs-http-api``.

With ``--check`` it only reports by its exit code whether the page is current.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast, get_type_hints

from barnabas.broker.api.checks import Check, Denial
from barnabas.broker.config.pages.generated_page import write_or_compare
from barnabas.broker.console.actions.effect import OLD_FIGURES, Effect
from barnabas.broker.console.actions.performing import PARAMETERS as DRY_RUN
from barnabas.broker.console.actions.table import ACTIONS
from barnabas.broker.console.application import OPENAPI, STATUS
from barnabas.broker.console.encoding import OLD_NAMES
from barnabas.broker.console.openapi import ERRORS, ERRORS_OF_CHANGES
from barnabas.broker.console.routes import LIVE, ROUTES
from barnabas.broker.http.pages import pages
from barnabas.broker.http.site import NEEDS, SESSION
from barnabas.broker.security.acls.operations import Operation, ResourceType, shown
from barnabas.broker.security.web.guard import PROBES
from tests.checkout import ROOT

PAGE: Final = ROOT / "docs" / "http-api.md"

_READY: Final = "200 when the broker serves clients, else 503; JSON with the reasons"
PAGES: Final = {
    "/livez": "200 while the event loop runs and nothing durable has failed, else 503; JSON",
    "/readyz": _READY,
    "/health": f"{_READY}. The same as `/readyz`",
    "/healthz": f"{_READY}. The same as `/readyz`",
    "/metrics": "[metrics](metrics.md) in Prometheus' text format",
    "/config": "JSON: each key with its value and its source",
}
"""Responses of the pages for probes and metrics."""

NOTES: Final = {
    "acls": "`enabled`: whether the broker has an authorizer",
    "blocked-partitions": (
        "Each partition has its first ten open transactions; `hanging` are those that no "
        "coordinator knows"
    ),
    "clients": "Client ID, software, address, user, traffic, last request, cause of a wait",
    "events": (
        "Starts, topics created, extended and deleted, changed settings, a full disk, and the "
        "events of the audit log"
    ),
    "groups/{group}": (
        "`lag_readable`: records that a `read_committed` consumer can read now; `lag_blocked`: "
        "records that an open transaction blocks, with that transaction as `blocked_by`. Without a "
        "committed offset all three are null"
    ),
    "groups/{group}/history": "[Lag over time](console.md#lag-over-time)",
    "history": "`step_s=1`: ten minutes, `step_s=10`: six hours",
    "jobs": "[Replay](console.md#replay); ended ones are the last hundred",
    "overview": (
        "`waiting` in `worst` sums up all transactions that have blocked consumers for ten seconds "
        "or more"
    ),
    "readers": (
        "Position and lag by the last fetches, also of consumers without a group, such as Spark's. "
        "User and address are null without DESCRIBE on the cluster, and so is the client ID "
        "without DESCRIBE on a group of the client"
    ),
    "session": "`POST` and `DELETE` of the same path begin and end a session",
    "spark-queries": "[Spark's queries](console.md#sparks-queries)",
    "storage": "Free space and when it is used up, journal, times of syncs, last compactions",
    "topics": "`written` counts all offsets since the creation of the topic",
    "topics/{topic}/groups": "The lag is that on the topic alone",
    "topics/{topic}/producers": "`open=true`: only those with an open transaction on the topic",
    "topics/{topic}/records": "[Records](console.md#records)",
    "transaction-events": "[History](console.md#history-of-a-transactional-id)",
}
"""Facts about a response that its fields do not show, by path below ``/api/v1/``."""

_INTRODUCTION: Final = """\
# HTTP API

Written by `make docs-http-api` from the tables by which the broker routes requests; `make check`
compares it. [Console](console.md#api) explains how to use the API, [Monitoring](monitoring.md) the
probes, and [HTTP port](security/reference.md#http-port) when a request needs a user or a token.
`GET /api/openapi.json` of a broker has the type and meaning of every parameter and field.

HEAD is accepted where GET is. Permissions apply where the port needs a user. "In each row": the
list leaves out the rows without it.

## Probes, metrics and configuration

| Method | Path | Permission | Response |
|---|---|---|---|
"""

_BASE: Final = "/api/v1/"


def page() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _INTRODUCTION.rstrip("\n")
    yield from _pages()
    yield "\n## Read\n"
    yield "| Method | Path | Permission | Parameters | Response |"
    yield "|---|---|---|---|---|"
    yield from _reads()
    yield "\n## Change\n"
    yield (
        "Each takes its fields as a JSON object, and the parameter "
        + ", ".join(f"`{each.name}`" for each in DRY_RUN)
        + ". Fields in bold are required."
    )
    yield "A change that cannot be undone also needs `confirm` and `based_on`. The response is an"
    yield f"object with {_names(get_type_hints(Effect))}.\n"
    yield "| Method | Path | Permission | Fields | Effect |"
    yield "|---|---|---|---|---|"
    yield from _changes()
    yield "\n## Old names\n"
    yield "Responses have these fields under both names, and `sort` accepts both.\n"
    yield "| Field | Old name |"
    yield "|---|---|"
    for name, old in OLD_NAMES.items():
        yield f"| `{name}` | `{old}` |"
    yield "\nThe `figures` of a change have these under both names.\n"
    yield "| Figure | Old name |"
    yield "|---|---|"
    for name, old in OLD_FIGURES.items():
        yield f"| `{name}` | `{old}` |"
    yield "\n## Statuses\n"
    yield 'Errors are `{"error": KAFKA_NAME, "message": text}`. Other names have the status 500.\n'
    yield "| Status | Meaning | Errors |"
    yield "|---|---|---|"
    for status, meaning in sorted((ERRORS | ERRORS_OF_CHANGES).items()):
        codes = sorted(code.name for code, each in STATUS.items() if each == int(status))
        yield f"| {status} | {meaning} | {', '.join(f'`{code}`' for code in codes)} |"


def _pages() -> Iterator[str]:
    # The functions behind the paths read the broker, and only when they are called.
    for path in pages(cast("Any", None)):
        operation = NEEDS.get(path, Operation.DESCRIBE)
        needs = "none" if path in PROBES else f"{shown(operation)} on Cluster"
        yield f"| GET | `{path}` | {needs} | {PAGES[path]} |"
    yield f"| GET | `{OPENAPI}` | a user | this API in OpenAPI 3.1 |"
    yield "| GET | other paths | none | the page of the [console](console.md) |"


def _reads() -> Iterator[str]:
    for route in sorted(ROUTES, key=lambda route: route.template):
        fields = () if route.shape is bytes else get_type_hints(route.shape)
        shape = f"Fields: {_names(fields)}" if fields else "Bytes"
        note = NOTES.get(route.template.removeprefix(_BASE))
        response = f"{route.summary}. {shape}." + (f" {note}." if note else "")
        parameters = _names(each.name for each in route.parameters)
        yield f"| GET | `{route.template}` | {_needs(route.check)} | {parameters} | {response} |"
    parameters = _names(each.name for each in LIVE.parameters)
    needs, response = "those of the watched paths", f"{LIVE.summary}. [Live](console.md#live)."
    yield f"| GET | `{LIVE.template}` | {needs} | {parameters} | {response} |"


def _changes() -> Iterator[str]:
    yield f"| POST | `{SESSION}` | none | | Begin a session, by the header `Authorization` |"
    yield f"| DELETE | `{SESSION}` | none | | End the session |"
    for action in sorted(ACTIONS, key=lambda action: (action.template, action.method)):
        fields = ", ".join(
            f"**`{each.name}`**" if each.required else f"`{each.name}`" for each in action.fields
        )
        effect = action.title + (". Cannot be undone" if action.is_destructive else "")
        needs = _needs(action.check)
        yield f"| {action.method} | `{action.template}` | {needs} | {fields} | {effect} |"


def _needs(check: Check) -> str:
    needs = f"{shown(check.operation)} on {shown(check.resource_type)}"
    if check.denial is not Denial.LEFT_OUT:
        return needs
    # Lists have no rows of the cluster: such a path shows every user something.
    return "none" if check.resource_type is ResourceType.CLUSTER else f"{needs} in each row"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main() -> int:
    """Write the page, or compare it; return the exit code."""
    return write_or_compare(PAGE, page(), module="tests.site.http_api", target="docs-http-api")


if __name__ == "__main__":
    sys.exit(main())
