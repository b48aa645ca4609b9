"""Writes docs/permissions.md from the table of checks: ``make docs-permissions``.

With ``--check`` it writes nothing; the exit code is 1 if the page differs from the table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from barnabas.broker.api.checks import CHECKS, Check, Denial
from barnabas.broker.config.pages.generated_page import write_or_compare
from barnabas.broker.security.acls.operations import shown

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "permissions.md"
_NEWEST: Final = 32_767

_INTRODUCTION: Final = """\
# Permissions

Written by `make docs-permissions` from the table in `broker/api/checks.py`, by which the broker
decides; `make check` compares it.
[ACLs](security/acls.md) has recipes for each role.

The response contains the error of the first missing permission, from above. "The whole request":
the broker changes nothing. "Each item": it processes the other items. "Left out": no error, and the
response does not contain the item. A permission on Cluster is one on `Cluster:kafka-cluster`.

Names of clients follow Apache Kafka's permissions. DESCRIBE on a group shows client id and host of
its members (DescribeGroups). DESCRIBE on a transactional id shows client id and host of the clients
that used that id, also of a client that was fenced; Apache Kafka has no such fields, and this is
the rule of groups. Users and addresses of connections need DESCRIBE on Cluster, in the console's
`clients` and `readers`; `readers` shows a client id to callers with that permission, or with
DESCRIBE on a group that this client is a member of.

| API | Permission | On | Without it |
|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    rows = [row for api in sorted(CHECKS) for row in _rows(api)]
    return _INTRODUCTION + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _rows(api: str) -> Iterator[tuple[str, str, str, str]]:
    if not CHECKS[api]:
        yield api, "none", "", ""
    for check in CHECKS[api]:
        yield api, _permissions(check), _subject(check), _denial(check)


def _permissions(check: Check) -> str:
    either = ((check.operation, check.resource_type), *check.or_else)
    return " or ".join(f"{operation.name} on {shown(kind)}" for operation, kind in either)


def _subject(check: Check) -> str:
    name = f"`{check.name}`" if check.name and " " not in check.name else check.name
    first, last = check.versions
    versions = ""
    if check.versions != (0, _NEWEST):
        versions = f"from v{first} on" if last == _NEWEST else f"v{first} to v{last}"
    return ", ".join(filter(None, (name, versions, check.when)))


def _denial(check: Check) -> str:
    if check.denial is Denial.LEFT_OUT:
        return str(check.denial.value)
    return f"{check.denial.value}: {check.code.name} ({check.code.value})"


def main() -> int:
    """Write the page, or compare it; return the exit code."""
    return write_or_compare(
        PAGE, page(), module="barnabas.broker.api.permissions_page", target="docs-permissions"
    )


if __name__ == "__main__":
    sys.exit(main())
