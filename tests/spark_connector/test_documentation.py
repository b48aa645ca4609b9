"""docs/spark-options.md is current; docs/spark.md names existing kinds, programs and fields."""

import dataclasses
import re

from barnabas.spark_connector.monitoring.progress import batch_progress
from barnabas.spark_connector.pipelines.sink import KINDS
from barnabas.spark_connector.settings.options import KAFKA_OPTIONS, OWN_OPTIONS
from barnabas.spark_connector.settings.store_options import STORE_OPTIONS
from tests.checkout import ROOT
from tests.site.spark_options import PAGE as OPTIONS_PAGE
from tests.site.spark_options import main, page
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


def test_the_page_of_options_is_current():
    assert OPTIONS_PAGE.read_text(encoding="utf-8") == page(), "run 'make docs-spark-options'"


def test_each_option_has_one_row_with_a_meaning():
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in page().splitlines()
        if line.startswith("| `")
    ]
    names = [named(row[0])[0] for row in rows]
    options = {*OWN_OPTIONS, *KAFKA_OPTIONS, *STORE_OPTIONS}
    assert {name: names.count(name) for name in options} == dict.fromkeys(options, 1)
    assert all(row[-1] for row in rows)


def test_the_check_fails_for_an_old_page(tmp_path, monkeypatch, capsys):
    old = tmp_path / "spark-options.md"
    old.write_text("old")
    monkeypatch.setattr("tests.site.spark_options.PAGE", old)
    monkeypatch.setattr("sys.argv", ["spark_options", "--check"])
    assert main() == 1
    assert "is not current: run 'make docs-spark-options'" in capsys.readouterr().err


def test_programs_of_the_format_are_those_of_the_examples():
    format_block, sink_block = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[
        :2
    ]
    assert format_block in (ROOT / "examples" / "spark_sink.py").read_text()
    assert sink_block in (ROOT / "examples" / "spark_sink_pipeline.py").read_text()


def test_iceberg_recipe_is_what_the_crash_table_runs():
    (block,) = re.findall(r"^def save.*?(?=^```)", RECIPES, re.MULTILINE | re.DOTALL)
    played = (ROOT / "tests" / "spark" / "job.py").read_text().replace("{name}", "{table}")
    played = played.replace("table(name)", "table(table)").replace(
        "writeTo(name)", "writeTo(table)"
    )
    for line in block.splitlines()[2:-1]:
        assert line in played, line


def test_the_kinds_are_listed():
    kinds = {name for row in table("| `kind` | Guarantee") for name in named(row[0])}
    assert kinds == set(KINDS)


def test_the_fields_of_a_line_for_programs():
    said = PAGE[PAGE.index("In JSON the line is an object with") :].partition(", null where")[0]
    fields = dataclasses.fields(batch_progress("a", report(1)))
    assert named(said) == [field.name for field in fields]
