"""docs/monitoring.md names what there is, and all of ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barnabas.broker.config.broker_config import BROKER_CONFIGS
from barnabas.broker.http.connection import ANSWER_SECONDS, QUESTION_SECONDS
from barnabas.broker.http.pages import pages
from barnabas.broker.http.server import ANSWERED_MAX, ASKING_MAX, PROBES_MAX, STREAMS_MAX
from barnabas.broker.http.site import CONSOLE
from barnabas.broker.metrics.collectors import register_cluster_store
from barnabas.storage.counts import FlushCounts
from barnabas.testing import Broker
from tests.broker.metrics.committing import commit

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
QUOTED = re.findall(r"`([^`]+)`", PAGE)


@pytest.fixture(scope="module")
def families():
    with Broker() as broker:
        broker.create_topic("t")
        commit(broker, "g", "t", {0: 0})
        metrics = broker.server.metrics
        register_cluster_store(metrics, FlushCounts(), lambda: "")  # As brokers of a cluster do.
        return broker.call(lambda: {family.name for family in metrics.collect()})


def test_every_metric_that_is_named_is_there(families):
    named = {word for word in QUOTED if re.fullmatch(r"(kafka|barnabas|process)_\w+", word)}
    assert len(named) > 20
    assert named <= families


def test_every_metric_of_ours_is_named(families):
    assert {name for name in families if name.startswith("barnabas_")} <= set(QUOTED)


def test_every_page_of_the_port_is_named():
    with Broker() as broker:
        served = set(pages(broker.server))
    named = {word for word in QUOTED if re.fullmatch(r"/\w*", word)}
    assert named == served | {"/" + "".join(parts) for parts in CONSOLE}


def test_its_settings_and_limits_are_true():
    listener = BROKER_CONFIGS["barnabas.http.listener"]
    assert f"`{listener.default_text}` unless `{listener.name}` says otherwise" in PAGE
    assert "`barnabas.metrics.partitions=false`" in PAGE
    assert f"{QUESTION_SECONDS:.0f} s to ask and {ANSWER_SECONDS:.0f} s to read" in PAGE
    assert f"{ASKING_MAX} connections at a time may be asking, {ANSWERED_MAX} reading" in PAGE
    assert f"{ANSWERED_MAX} reading, {STREAMS_MAX} watching" in PAGE
    assert f"and {PROBES_MAX} more reading what probes" in PAGE
    for path in re.findall(r"`(docker/[^`]+)`", PAGE):
        assert (ROOT / path).exists()
