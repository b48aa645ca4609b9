"""docs/transactions.md says what is so."""

from __future__ import annotations

import re
from pathlib import Path

from barnabas.broker.cli.commands.transactions import _VERBS as VERBS
from barnabas.broker.config.broker_config import BROKER_CONFIGS
from barnabas.broker.config.ignored import IGNORED_CONFIGS
from barnabas.broker.handlers.transactions.transaction_views import IDS_PER_REQUEST_MAX, LISTED_MAX
from barnabas.coordinator.transactions.state import STORABLE
from barnabas.protocol.generate.schema import read_schema

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "transactions.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (`.+?`) \|", re.MULTILINE)


def section(title):
    return PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def keys(text):
    return [key for row in ROW.findall(text) for key in re.findall(r"`([^`]+)`", row)]


def test_every_state_is_explained():
    named = keys(section("States"))
    assert sorted(named) == sorted(state.kafka_name for state in STORABLE)


def test_the_settings_are_those_of_the_code():
    effective, ignored = section("Settings").split("Accepted, and without effect here")
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]*)` \|", effective, re.MULTILINE)
    assert rows
    for key, default in rows:
        assert BROKER_CONFIGS[key].default_text == default, key
    named = set(keys(ignored))
    there = {
        key
        for key in (*BROKER_CONFIGS, *IGNORED_CONFIGS)
        if key.startswith(("transaction", "add.partitions", "barnabas.transaction"))
    }
    assert named | {key for key, _ in rows} >= there
    # What one broker has no use for is a key like others, with one value that makes sense.
    replicas = {"transaction.state.log.replication.factor", "transaction.state.log.min.isr"}
    assert named - replicas <= set(IGNORED_CONFIGS)
    assert not {key for key, _ in rows} & set(IGNORED_CONFIGS)


def test_the_commands_are_there():
    for verb in re.findall(r"barnabas transactions (\w+)", PAGE):
        assert verb in VERBS
    for option in re.findall(r"(?<=\s)--[a-z][a-z-]+", PAGE):
        text = (ROOT / "broker" / "cli" / "commands" / "transactions.py").read_text(
            encoding="utf-8"
        )
        assert f'"{option}"' in text or option == "--format"


def test_limits_and_tags_are_true():
    assert f"at most {LISTED_MAX:,} IDs" in PAGE
    assert f"at most {IDS_PER_REQUEST_MAX:,}" in PAGE
    schema = read_schema(ROOT / "protocol" / "schemas" / "describe_transactions.schema")
    (states,) = (each for each in schema.sections["response"].fields if each.struct)
    tags = [field.tag for field in states.struct.fields if field.tag is not None]
    assert f"tagged fields of Barnabas ({tags[0]}, {tags[1]})" in PAGE
