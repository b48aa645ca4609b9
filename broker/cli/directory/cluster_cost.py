"""``barnabas cluster cost``: what a cluster's stores have, and what they and their requests cost.

Rules of this file:

1. No price is known here for certain: providers change them, and regions differ. The defaults are
   those in docs/cluster.md, with their source and date; ``--price`` replaces each.
2. Requests are those that brokers have added to PostgreSQL, by the hour. A month has 730 hours.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.broker.cli import configuration
from barnabas.broker.cli.arguments import add_format, whole_number
from barnabas.broker.cli.directory.cluster_objects import opened_stores
from barnabas.broker.cli.errors import OK, USAGE, CommandError
from barnabas.broker.cli.output import print_json, print_table
from barnabas.broker.cli.printing import print_text

if TYPE_CHECKING:
    from barnabas.storage.objects.object_rows import Usage

PRICES: Final = {
    "put": 5.0,
    "get": 0.4,
    "list": 5.0,
    "delete": 0.0,
    "objects": 0.023,
    "database": 0.0,
}
"""In USD: a million requests of each operation, and a GB (10^9 bytes) for a month."""
HOURS: Final = 24
HOURS_MAX: Final = 31 * 24
_HOURS_A_MONTH: Final = 730
_KINDS: Final = {"wal": "objects of flushes", "seg": "segments"}
_OPERATIONS: Final = ("put", "get", "list", "delete")


class Line(NamedTuple):
    """One line of the bill."""

    name: str
    number: int
    size_bytes: int
    usd: float | None
    """Cost of the requests in the given time, or None for what is stored."""
    usd_a_month: float


def add_cost(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``barnabas cluster cost``."""
    parser.usage = "barnabas cluster cost [server.properties] [options]"
    parser.epilog = (
        "Names of prices: put, get, list, delete (a million requests), objects, database (a GB for "
        "a month). The defaults are those of S3 Standard in docs/cluster.md; the database is free."
    )
    configuration.add_arguments(parser)
    parser.add_argument(
        "--hours",
        type=whole_number,
        default=HOURS,
        metavar="N",
        help=f"requests of the last N hours (default {HOURS}, at most {HOURS_MAX})",
    )
    parser.add_argument(
        "--price",
        action="append",
        default=[],
        metavar="NAME=USD",
        help="a price in USD; repeatable",
    )
    add_format(parser)


def cost(arguments: argparse.Namespace) -> int:
    """Print the stores and the costs of a cluster; return the exit code."""
    prices = _prices(arguments.price)
    if not 1 <= arguments.hours <= HOURS_MAX:
        raise CommandError(f"--hours {arguments.hours}: must be 1 to {HOURS_MAX}", USAGE)
    config = configuration.cluster_config(arguments)
    with opened_stores(config) as (base, _):
        with contextlib.closing(base.metastore(config.node_id)) as metastore:
            cluster_id = metastore.identity.cluster_id
        with contextlib.closing(base.object_rows()) as rows:
            usage = rows.usage(arguments.hours)
    lines = [*bill(usage, prices)]
    total = sum(each.usd_a_month for each in lines)
    if arguments.format == "json":
        print_json(_document(cluster_id, usage, prices, lines, total))
        return OK
    hours = usage.seconds / 3600
    print_text(f"cluster {cluster_id}, requests of {hours:.1f} hours")
    print_table(
        ("WHAT", "NUMBER", "BYTES", "USD", "USD/MONTH"),
        [
            (
                each.name,
                f"{each.number:,}",
                f"{each.size_bytes:,}",
                "" if each.usd is None else f"{each.usd:.4f}",
                f"{each.usd_a_month:.2f}",
            )
            for each in lines
        ],
    )
    print_text(f"{usage.waiting_keys:,} objects without records wait for their deletion")
    print_text(f"total: {total:.2f} USD a month at these prices")
    return OK


def bill(usage: Usage, prices: Mapping[str, float]) -> Iterator[Line]:
    """Yield the lines of a bill."""
    hours = usage.seconds / 3600
    for operation in _OPERATIONS:
        sent = usage.requests.get(operation)
        if sent is not None:
            usd = sent.calls * prices[operation] / 1e6
            a_month = usd * _HOURS_A_MONTH / hours if hours else 0.0
            yield Line(operation, sent.calls, sent.size_bytes, usd, a_month)
    for kind, name in _KINDS.items():
        held = usage.objects.get(kind)
        if held is not None:
            a_month = held.size_bytes * prices["objects"] / 1e9
            yield Line(name, held.objects, held.size_bytes, None, a_month)
    rows = usage.rows
    yield Line("payloads in PostgreSQL", rows.objects, rows.size_bytes, None, 0.0)
    a_month = usage.index_bytes * prices["database"] / 1e9
    yield Line("PostgreSQL's database", 1, usage.index_bytes, None, a_month)


def _prices(given: list[str]) -> dict[str, float]:
    """Return the defaults and the given prices; raises CommandError."""
    prices = dict(PRICES)
    for each in given:
        name, _, text = each.partition("=")
        if name not in PRICES:
            names = ", ".join(PRICES)
            raise CommandError(f"--price {each}: the names are {names}", USAGE)
        try:
            usd = float(text)
        except ValueError:
            raise CommandError(f"--price {each}: {text!r} is no number", USAGE) from None
        if not 0 <= usd < float("inf"):
            raise CommandError(f"--price {each}: must be 0 or more", USAGE)
        prices[name] = usd
    return prices


def _document(
    cluster_id: str, usage: Usage, prices: Mapping[str, float], lines: list[Line], total: float
) -> dict[str, Any]:
    return {
        "cluster_id": cluster_id,
        "hours": usage.seconds / 3600,
        "prices_usd": dict(prices),
        "lines": [
            {
                "name": each.name,
                "number": each.number,
                "bytes": each.size_bytes,
                "usd": each.usd,
                "usd_a_month": each.usd_a_month,
            }
            for each in lines
        ],
        "waiting_objects": usage.waiting_keys,
        "usd_a_month": total,
    }
