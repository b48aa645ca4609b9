"""Users, ACLs and quotas, as the protocol reports them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.admin.acls import acls_in
from barnabas.broker.api.checks import (
    CLUSTER,
    CLUSTER_DENIED,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    Check,
    Denial,
)
from barnabas.broker.console.actions.wire import WireClient, check
from barnabas.broker.console.encoding import fields_of
from barnabas.broker.console.pacing import ROW_UNITS
from barnabas.broker.console.parameters import paged
from barnabas.broker.console.route import Route
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
from barnabas.protocol.messages.describe_acls import DESCRIBE_ACLS, DescribeAclsRequest
from barnabas.protocol.messages.describe_client_quotas import (
    DESCRIBE_CLIENT_QUOTAS,
    DescribeClientQuotasRequest,
)
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    DescribeUserScramCredentialsRequest,
)
from barnabas.protocol.sasl.scram import MECHANISMS

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question

ORDERS: Final[Mapping[str, tuple[type, ...]]] = {"name": (str, int)}
DEFAULT: Final = "<default>"
"""Entity of all users or clients without a quota of their own, as in Kafka's tools."""
_BY_NUMBER: Final = {each.number: each.name for each in MECHANISMS.values()}

Row = TypeVar("Row", UserRow, AclRow, QuotaRow)


async def users_of(wire: WireClient) -> list[UserRow]:
    """Return the users of SCRAM; raises KafkaError."""
    answer = await wire.ask(
        DESCRIBE_USER_SCRAM_CREDENTIALS, DescribeUserScramCredentialsRequest(None)
    )
    check(answer.error_code, answer.error_message)
    return [
        UserRow(
            each.user,
            tuple(_BY_NUMBER[info.mechanism] for info in each.credential_infos),
            tuple(info.iterations for info in each.credential_infos),
        )
        for each in answer.results
    ]


async def acls_of(wire: WireClient) -> list[AclRow]:
    """Return all ACLs; raises KafkaError SECURITY_DISABLED without access control."""
    answer = await wire.ask(DESCRIBE_ACLS, DescribeAclsRequest(*AclFilter()))
    check(answer.error_code, answer.error_message)
    return [
        AclRow(
            each.principal,
            shown(each.permission),
            shown(each.operation),
            shown(each.resource_type),
            each.name,
            shown(each.pattern),
            each.host,
        )
        for each in acls_in(answer)
    ]


async def quotas_of(wire: WireClient) -> list[QuotaRow]:
    """Return all quotas of users, client IDs and addresses; raises KafkaError."""
    answer = await wire.ask(DESCRIBE_CLIENT_QUOTAS, DescribeClientQuotasRequest([], strict=False))
    check(answer.error_code, answer.error_message)
    rows = []
    for entry in answer.entries or []:
        parts = {
            each.entity_type: DEFAULT if each.entity_name is None else each.entity_name
            for each in entry.entity
        }
        name = " ".join(f"{kind}={parts[kind]}" for kind in (USER, CLIENT_ID, IP) if kind in parts)
        rows += [
            QuotaRow(
                f"{name} {each.key}",
                parts.get(USER),
                parts.get(CLIENT_ID),
                parts.get(IP),
                each.key,
                each.value,
            )
            for each in entry.values
        ]
    return rows


async def list_users(question: Question) -> UserPage:
    """List the users that the broker stores."""
    rows = await users_of(WireClient(question.broker, question.access))
    following, page = await _page(question, rows)
    return UserPage(question.now_ms, following, page)


async def list_acls(question: Question) -> AclPage:
    """List the ACLs."""
    try:
        rows = await acls_of(WireClient(question.broker, question.access))
    except KafkaError as error:
        if error.code is not ErrorCode.SECURITY_DISABLED:
            raise
        return AclPage(question.now_ms, None, enabled=False, items=())
    following, page = await _page(question, rows)
    return AclPage(question.now_ms, following, enabled=True, items=page)


async def list_quotas(question: Question) -> QuotaPage:
    """List the quotas."""
    rows = await quotas_of(WireClient(question.broker, question.access))
    following, page = await _page(question, rows)
    return QuotaPage(question.now_ms, following, page)


async def _page(question: Question, rows: Iterable[Row]) -> tuple[str | None, tuple[Row, ...]]:
    """Return the cursor of the next page, and the rows of this one, by their names."""
    wanted, found = question.text("filter").casefold(), sorted(rows, key=as_text)
    selection = question.selection(ORDERS)
    for number, row in enumerate(found):
        await question.pace.spend()
        if wanted in as_text(row).casefold():
            selection.offer(_name_of(row), number)
    page, following = selection.page()
    await question.pace.spend(ROW_UNITS)
    return following, tuple(found[int(place[-1])] for place in page)


def as_text(row: UserRow | AclRow | QuotaRow) -> str:
    """Return a row as one text, for the filter."""
    texts = (str(value) for value in as_list(row))
    return "\n".join(texts)


def as_list(row: UserRow | AclRow | QuotaRow) -> list[object]:
    """Return the values of a row in their order."""
    return [getattr(row, name) for name in fields_of(type(row))]


def _name_of(row: UserRow | AclRow | QuotaRow) -> str:
    return row.principal if isinstance(row, AclRow) else row.name


_CLUSTER: Final = Check(DESCRIBE, CLUSTER, "", CLUSTER_DENIED, Denial.REQUEST)
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
        _CLUSTER._replace(operation=DESCRIBE_CONFIGS),
        _PAGED,
    ),
)
