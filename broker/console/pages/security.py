"""Users, ACLs and quotas, as the protocol reports them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.admin import acls, quotas, users
from barnabas.broker.api.checks import (
    CLUSTER,
    DESCRIBE_CONFIGS,
)
from barnabas.broker.console.actions.wire import WireClient
from barnabas.broker.console.encoding import fields_of
from barnabas.broker.console.pacing import ROW_UNITS
from barnabas.broker.console.parameters import paged
from barnabas.broker.console.route import Route, required
from barnabas.broker.console.shapes_security import (
    AclPage,
    AclRow,
    QuotaPage,
    QuotaRow,
    UserPage,
    UserRow,
)
from barnabas.broker.security.acls.acls import AclFilter
from barnabas.broker.security.acls.operations import shown
from barnabas.broker.security.quotas.quota_limits import CLIENT_ID, IP, USER
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question

ORDERS: Final[Mapping[str, tuple[type, ...]]] = {"name": (str, int)}
Row = TypeVar("Row", UserRow, AclRow, QuotaRow)


async def list_users(question: Question) -> UserPage:
    """List the users that the broker stores."""
    found = await WireClient(question.broker, question.access).run(users.list_users())
    rows = [UserRow(name, tuple(each), tuple(each.values())) for name, each in found.items()]
    following, page = await _page(question, rows)
    return UserPage(question.now_ms, following, page)


async def list_acls(question: Question) -> AclPage:
    """List the ACLs."""
    wire = WireClient(question.broker, question.access)
    try:
        found = await wire.run(acls.list_acls(AclFilter()))
    except KafkaError as error:
        if error.code is not ErrorCode.SECURITY_DISABLED:
            raise
        return AclPage(question.now_ms, None, enabled=False, items=())
    rows = [
        AclRow(
            each.principal,
            shown(each.permission),
            shown(each.operation),
            shown(each.resource_type),
            each.name,
            shown(each.pattern),
            each.host,
        )
        for each in found
    ]
    following, page = await _page(question, rows)
    return AclPage(question.now_ms, following, enabled=True, items=page)


async def list_quotas(question: Question) -> QuotaPage:
    """List limits."""
    found = await WireClient(question.broker, question.access).run(quotas.list_quotas({}))
    rows = [
        QuotaRow(
            f"{each.text} {key}", each.name(USER), each.name(CLIENT_ID), each.name(IP), key, value
        )
        for each in found
        for key, value in each.limits.items()
    ]
    following, page = await _page(question, rows)
    return QuotaPage(question.now_ms, following, page)


async def _page(question: Question, rows: Iterable[Row]) -> tuple[str | None, tuple[Row, ...]]:
    """Return the cursor of the next page, and the rows of this one, by their names."""
    wanted = question.text("filter").casefold()
    selection = question.selection(ORDERS)
    for number, row in enumerate(sorted(rows, key=as_text)):
        await question.pace.spend()
        if wanted in as_text(row).casefold():
            selection.offer(row, _name_of(row), number)
    await question.pace.spend(ROW_UNITS)
    return selection.following, tuple(selection.page())


def as_text(row: UserRow | AclRow | QuotaRow) -> str:
    """Return a row as one text, for the filter."""
    texts = (str(value) for value in as_list(row))
    return "\n".join(texts)


def as_list(row: UserRow | AclRow | QuotaRow) -> list[object]:
    """Return the values of a row in their order."""
    return [getattr(row, name) for name in fields_of(type(row))]


def _name_of(row: UserRow | AclRow | QuotaRow) -> str:
    return row.principal if isinstance(row, AclRow) else row.name


_CLUSTER: Final = required(CLUSTER)
_PAGED: Final = paged("name", ORDERS, "any of its texts")

SECURITY_ROUTES: Final = (
    Route(
        "/api/v1/users",
        "Users of SCRAM with their mechanisms",
        list_users,
        UserPage,
        _CLUSTER,
        _PAGED,
    ),
    Route("/api/v1/acls", "ACLs", list_acls, AclPage, _CLUSTER, _PAGED),
    Route(
        "/api/v1/quotas",
        "Quotas of users, client IDs and addresses",
        list_quotas,
        QuotaPage,
        required(CLUSTER, DESCRIBE_CONFIGS),
        _PAGED,
    ),
)
