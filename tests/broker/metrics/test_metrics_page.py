"""docs/metrics.md: generated, current and complete."""

from __future__ import annotations

import re

import pytest

from barnabas.broker.metrics.families import OLD_NAMES
from tests.site.metrics import PAGE, Metric, alone, in_cluster, main, of_spark, page


@pytest.fixture(scope="module")
def text() -> str:
    """The page that the sources give."""
    return page()


def rows(text: str) -> dict[str, list[str]]:
    found = {}
    for line in text.splitlines():
        if line.startswith("| `"):
            name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            assert name not in found
            found[name] = cells
    return found


def test_the_page_is_current(text):
    assert PAGE.read_text(encoding="utf-8") == text, "run 'make docs-metrics'"


def test_each_metric_has_one_row_with_type_labels_unit_and_meaning(text):
    found = rows(text)
    names = alone().keys() | in_cluster().keys() | of_spark().keys()
    assert found.keys() == {f"`{name}`" for name in names}
    for kind, _, unit, meaning in found.values():
        assert kind in {"counter", "gauge", "histogram", "summary"}
        assert unit
        assert re.search(r"[a-z]{2}.*\.$", meaning)


def test_old_names_are_called_old(text):
    found = rows(text)
    for name, old in OLD_NAMES.items():
        assert found[f"`{old}`"][:3] == found[f"`{name}`"][:3]
        assert found[f"`{old}`"][3] == f"{found[f'`{name}`'][3]} Old name of {name}."


def test_labels_are_those_of_the_samples(text):
    found = rows(text)
    assert found["`kafka_consumergroup_lag`"][1] == "`consumergroup`, `topic`, `partition`"
    assert found["`barnabas_request_seconds`"][1] == "`api`"
    assert found["`barnabas_transaction_markers_missing_elsewhere`"][1] == "`broker`"
    assert found["`barnabas_flush_seconds`"][1] == ""


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("barnabas_loop_busy_seconds_total", "seconds"),
        ("barnabas_scrub_last_full_pass_timestamp_seconds", "seconds since 1970"),
        ("barnabas_received_bytes_total", "bytes"),
        ("kafka_server_brokertopicmetrics_bytesin_total", "bytes"),
        ("kafka_network_requestmetrics_totaltimems", "milliseconds"),
        ("kafka_log_log_logendoffset", "offset"),
        ("kafka_consumergroup_lag_sum", "offsets"),
        ("barnabas_connections", "count"),
    ],
)
def test_units_follow_from_names(name, unit):
    assert Metric(name, "gauge", (), "A meaning.").unit == unit


def test_check_fails_for_an_old_page(tmp_path, monkeypatch, capsys):
    old = tmp_path / "metrics.md"
    old.write_text("old")
    monkeypatch.setattr("tests.site.metrics.PAGE", old)
    monkeypatch.setattr("sys.argv", ["metrics", "--check"])
    assert main() == 1
    assert "is not current: run 'make docs-metrics'" in capsys.readouterr().err
