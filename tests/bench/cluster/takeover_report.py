"""The last part of docs/benchmarks-cluster.md: how long many partitions are without a leader."""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench.cluster.takeovers import Results, Times
from tests.bench.report import table

HEADING = "## Takeovers"
KILL_S = 3.0
"""At most, behind the lease."""
STOP_S = 0.3
FAILOVER_S = 2.0

_METHOD = """\
Written by `make bench-cluster ARGS=--takeovers`: three brokers over a PostgreSQL pair, a topic with
records in each of its partitions, and transactional ids with a producer each. A partition of a
broker that was killed is served again when a Fetch shows all that was written, and a Produce is
acknowledged; a transactional id when InitProducerId is. While a broker stops, all of its partitions
are read and some of them written to, repeatedly; the time is that from the last response of the old
leader to the first of the new one. A failover is counted from when the new primary takes writes.
Brokers, PostgreSQL and the client share the cores: see the load.
"""


def part_of(page: str) -> str:
    """Return this part of the page as it is, or an empty text if there is none yet."""
    _, heading, rest = page.partition(f"\n{HEADING}\n")
    return heading[1:] + rest


def with_part(page: str, part: str) -> str:
    """Return the page with this part in place of the one that it has."""
    before, _, _ = page.partition(f"\n{HEADING}\n")
    return f"{before.rstrip()}\n\n{part}" if part else page


def written(facts: Sequence[tuple[str, str]], results: Results) -> str:
    """Return this part of the page."""
    size = results.size
    about = [
        ("partitions", f"{size.partitions:,}, beside those of internal topics"),
        ("transactional ids", f"{size.transactional_ids}"),
        ("lease", f"{size.lease_ms / 1000:.0f} s"),
    ]
    lines = [HEADING, "", *_METHOD.split("\n"), *table([("", ""), *facts, *about]), ""]
    return "\n".join([*lines, *table([_HEAD, *_rows(results)]), ""])


_HEAD = ("what", "of", "first", "median", "last", "target", "")


def _rows(results: Results) -> list[tuple[str, ...]]:
    kill, stop = results.kill, results.stop
    limit_s = kill.lease_s + KILL_S
    rows = [
        _row("a broker is killed", f"{kill.partitions} partitions", kill.served, limit_s),
        _row("", f"{kill.coordinators} transactional ids", kill.coordinated, limit_s),
        _row(f"a broker stops: {stop.whole_s:.1f} s", f"{stop.partitions} read", stop.read, STOP_S),
        _row("", f"{stop.samples} written to", stop.written, STOP_S),
        ("it restarts, and leads its share", "", "", "", f"{results.join_s:.2f} s", "", ""),
    ]
    for each in results.failovers:
        times = Times.of(each.acknowledged_s)
        row = _row(f"the primary goes: {each.title}", "3 brokers", times, FAILOVER_S)
        verdict = "met" if each.loaded == each.closed == 0 and row[-1] == "met" else "missed"
        rows.append((*row[:-1], f"{verdict}, {each.loaded} logs loaded, {each.closed} closed"))
    return rows


def _row(what: str, of: str, times: Times, limit_s: float) -> tuple[str, ...]:
    cells = (f"{each:.2f} s" for each in (times.first, times.middle, times.last))
    verdict = "met" if times.last <= limit_s else "missed"
    return (what, of, *cells, f"<= {limit_s:g} s", verdict)
