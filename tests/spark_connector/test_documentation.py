"""docs/spark.md has every option that there is, and none that there is not."""

import argparse
import dataclasses
import re

import pytest

from barnabas.spark_connector import Pipeline, Sink, Source
from barnabas.spark_connector.monitoring.progress import batch_progress
from barnabas.spark_connector.pipelines.sink import KINDS, OUTPUT_MODES
from barnabas.spark_connector.pipelines.source import BATCH_OFFSETS_MAX, MAX_OFFSETS
from barnabas.spark_connector.running.command import _parser
from barnabas.spark_connector.running.screen import FORMATS
from barnabas.spark_connector.settings.options import KAFKA_OPTIONS, OWN_OPTIONS, SinkOptions
from barnabas.spark_connector.settings.store_options import STORE_OPTIONS
from tests.checkout import ROOT
from tests.spark_connector.test_progress import report

PAGE = (ROOT / "docs" / "spark.md").read_text()
RECIPES = (ROOT / "docs" / "spark-recipes.md").read_text()


def table(head):
    """Return the rows below a table's first line: their cells."""
    rows = PAGE[PAGE.index(f"\n{head}") :].strip().splitlines()[2:]
    cells = []
    for row in rows:
        if not row.startswith("|"):
            break
        cells.append([cell.strip() for cell in row.strip("|").split("|")])
    return cells


def named(cell):
    """Return the names in a cell, without the values that they take."""
    return [name.split()[0] for name in re.findall(r"`([^`]+)`", cell)]


def test_the_options_of_the_command():
    (subparsers,) = (
        action.choices
        for action in _parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    options = [action for action in subparsers["run"]._actions if action.option_strings]
    there_are = {action.option_strings[-1]: action.metavar for action in options}
    del there_are["--help"]
    rows = table("| Option | |")
    assert {name for row in rows for name in named(row[0])} == there_are.keys()
    # With what they take, as the help has it.
    for name, metavar in there_are.items():
        if metavar is not None:
            assert any(f"`{name} {metavar}`" == row[0] for row in rows), name


def test_the_options_of_the_sink():
    rows = {name: row for row in table("| Option | Default | |") for name in named(row[0])}
    assert rows.keys() == {*OWN_OPTIONS, *KAFKA_OPTIONS}


def test_options_of_object_stores_are_listed():
    rows = table("| Option of the checkpoint |")
    assert {name for row in rows for name in named(row[0])} == set(STORE_OPTIONS)


def test_programs_of_the_format_are_those_of_the_examples():
    format_block, sink_block = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[
        :2
    ]
    assert format_block in (ROOT / "examples" / "spark_sink.py").read_text()
    assert sink_block in (ROOT / "examples" / "spark_sink_pipeline.py").read_text()


def test_defaults_of_the_source_are_listed():
    rows = {
        name: row[1].strip("`") for row in table("| Option | Default of") for name in named(row[0])
    }
    given = Source(topic="a", servers="b:1").spark_options(starting="earliest")
    del given["kafka.bootstrap.servers"], given["subscribe"]
    assert rows == {**given, MAX_OFFSETS: str(BATCH_OFFSETS_MAX)}


def test_iceberg_recipe_is_what_the_crash_table_runs():
    (block,) = re.findall(r"^def save.*?(?=^```)", RECIPES, re.MULTILINE | re.DOTALL)
    played = (ROOT / "tests" / "spark" / "job.py").read_text().replace("{name}", "{table}")
    played = played.replace("table(name)", "table(table)").replace(
        "writeTo(name)", "writeTo(table)"
    )
    for line in block.splitlines()[2:-1]:
        assert line in played, line


@pytest.mark.parametrize(
    ("option", "field"),
    [
        ("sourceGroupId", "source_group_id"),
        ("transactionTimeoutMs", "transaction_timeout_ms"),
        ("kafka.compression.type", "compression"),
        ("batchMaxBytes", "batch_max_bytes"),
        ("kafka.delivery.timeout.ms", "delivery_timeout_ms"),
        ("kafka.request.timeout.ms", "request_timeout_ms"),
        ("kafka.client.id", "client_id"),
        ("ledgerTopic", "ledger_topic"),
        ("newQuery", "new_query"),
    ],
)
def test_the_defaults_of_the_sink(option, field):
    parsed = SinkOptions.parse({"kafka.bootstrap.servers": "a:1", "sinkId": "sinkId"})
    (row,) = [row for row in table("| Option | Default | |") if named(row[0]) == [option]]
    default = row[1].strip("`").replace("<", "").replace(">", "")
    value = getattr(parsed, field)
    assert default == (str(value).lower() if isinstance(value, bool) else str(value))


@pytest.mark.parametrize("kind", [Pipeline, Source, Sink])
def test_the_arguments_of_a_pipeline(kind):
    names = {f"{field.name}=" for field in dataclasses.fields(kind)}
    assert {name for row in table(f"| `{kind.__name__}` | |") for name in named(row[0])} == names


def test_the_kinds_and_the_modes_and_the_formats():
    kinds = {name for row in table("| `kind` | Guarantee") for name in named(row[0])}
    assert kinds == set(KINDS)
    (modes,) = [row[1] for row in table("| `Sink` | |") if row[0] == "`output_mode=`"]
    assert set(named(modes)) == set(OUTPUT_MODES)
    (formats,) = [row[1] for row in table("| Option | |") if row[0] == "`--format FORMAT`"]
    assert set(named(formats)) == set(FORMATS)


def test_the_fields_of_a_line_for_programs():
    said = PAGE[PAGE.index("In JSON the line is an object with") :].partition(", null where")[0]
    fields = dataclasses.fields(batch_progress("a", report(1)))
    assert named(said) == [field.name for field in fields]
