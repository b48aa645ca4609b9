"""docs/console.md says what is so."""

from __future__ import annotations

import re
from pathlib import Path

from barnabas.broker.console import live, pacing, parameters
from barnabas.broker.console.actions.replay import COUNTED_BYTES, COUNTED_SECONDS
from barnabas.broker.console.jobs import replay
from barnabas.broker.console.jobs.registry import PREFIX, RUNNING_MOST
from barnabas.broker.console.pages import transactions
from barnabas.broker.console.routes import LIVE, ROUTES
from barnabas.broker.http import connection
from barnabas.broker.http.server import STREAMS_MAX
from barnabas.broker.metrics.history import QUANTILE_NAMES, SERIES

PAGE = (Path(__file__).parents[3] / "docs" / "console.md").read_text(encoding="utf-8")
WORDS = {2: "two", 8: "eight", 10: "ten"}


def test_paths_exist_that_are_named_to_begin_with():
    part = PAGE.split("Some to begin with", 1)[1].split("The same paths", 1)[0]
    named = re.findall(r"^- `([^`]+)`", part, re.MULTILINE)
    assert len(named) == 5
    there = {route.template for route in ROUTES} | {LIVE.template}
    assert {f"/api/v1/{name}" for name in named} <= there


def test_watchable_objects_are_documented():
    watch = PAGE.split("## Live\n", 1)[1].split("\n## ", 1)[0]
    for name, route in live.WATCHABLE.items():
        assert f"`{name}:" in watch if route.name_in_path else f"`{name}`" in watch
    assert f"at most {WORDS[live.WATCHED_MOST]}, names" in watch
    assert f"after {live.COMMENT_SECONDS} s without" in watch
    assert f"is disconnected\nafter {connection.ANSWER_SECONDS:.0f} s" in watch
    assert f"There are {STREAMS_MAX} such connections" in watch


def test_limits_are_true():
    assert f"`limit` (at most {parameters.LIMIT_MOST:,})" in PAGE
    assert f"no more than {pacing.UNITS_PER_TURN} things in a turn" in PAGE
    assert f"its first {WORDS[transactions.TRANSACTIONS_SHOWN]} open transactions" in PAGE
    counted = f"{len(SERIES)} counters and {WORDS[len(QUANTILE_NAMES)]} quantiles"
    assert counted in PAGE


def test_limits_of_replays_are_true():
    replay_part = PAGE.split("## Replay\n", 1)[1].split("\n## ", 1)[0]
    assert f"a dry run counts: {COUNTED_BYTES >> 20} MB or {WORDS[COUNTED_SECONDS]} seconds" in (
        replay_part
    )
    assert f"{WORDS[RUNNING_MOST]} jobs at a time" in replay_part
    assert f"{replay.RECORDS_MOST:,} records, {replay.BYTES_MOST >> 30} GB" in replay_part
    assert (replay.TIME_KEPT, "nine tenths of `transaction.max.timeout.ms`" in replay_part) == (
        0.9,
        True,
    )
    assert f"`{PREFIX}`" in replay_part
    assert f"`{replay.ORIGIN}`" in replay_part
