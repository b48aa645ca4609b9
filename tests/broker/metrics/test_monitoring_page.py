"""docs/monitoring.md names existing metrics, paths, settings and limits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barnabas.broker.config.broker_config import BROKER_CONFIGS
from barnabas.broker.http.connection import ANSWER_SECONDS, QUESTION_SECONDS
from barnabas.broker.http.pages import pages
from barnabas.broker.http.server import ANSWERED_MAX, ASKING_MAX, PROBES_MAX, STREAMS_MAX
from barnabas.broker.http.site import CONSOLE
from barnabas.spark_connector.monitoring.monitoring import PORT
from barnabas.spark_connector.monitoring.query_monitor import QUERIES_MAX, REFRESH_MIN_S, REFRESH_S
from barnabas.testing import Broker
from tests.site.metrics import alone, in_cluster, of_spark

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
QUOTED = re.findall(r"`([^`]+)`", re.sub(r"(?s)```.*?```", "", PAGE))


@pytest.fixture(scope="module")
def families():
    return alone().keys() | in_cluster().keys() | of_spark().keys()


def test_every_metric_that_is_named_is_there(families):
    named = {word for word in QUOTED if re.fullmatch(r"(kafka|barnabas|process)_\w+", word)}
    assert len(named) > 20
    assert named <= families


def test_limits_of_the_monitor_of_spark_queries_are_true():
    assert f"keeps {QUERIES_MAX} queries at most" in PAGE
    assert f"within a second of a batch, and at least every {REFRESH_S:.0f} seconds" in PAGE
    assert REFRESH_MIN_S == 1
    assert f"monitor(spark, port={PORT})" in PAGE


def test_every_page_of_the_port_is_named():
    with Broker() as broker:
        served = set(pages(broker.server))
    named = {word for word in QUOTED if re.fullmatch(r"/\w*", word)}
    assert named == served | {"/" + "".join(parts) for parts in CONSOLE}


def test_its_settings_and_limits_are_true():
    listener = BROKER_CONFIGS["barnabas.http.listener"]
    assert f"`{listener.default_text}` unless `{listener.name}` says otherwise" in PAGE
    assert "`barnabas.metrics.partitions=false`" in PAGE
    assert f"{QUESTION_SECONDS:.0f} s to send and {ANSWER_SECONDS:.0f} s to read" in PAGE
    assert f"{ASKING_MAX} connections may send a request, {ANSWERED_MAX} read a response" in PAGE
    assert f"{ANSWERED_MAX} read a response, {STREAMS_MAX} read live updates" in PAGE
    assert f"and {PROBES_MAX} more read the responses for probes" in PAGE
    for path in re.findall(r"`(docker/[^`]+)`", PAGE):
        assert (ROOT / path).exists()
