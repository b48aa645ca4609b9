"""Family 1 against the MBeans of a running Apache Kafka, through the usual rules of exporters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barnabas.broker.metrics.families import COUNTER, SUMMARY
from barnabas.testing import Broker

BEANS = Path(__file__).with_name("kafka_mbeans.txt").read_text(encoding="utf-8")

# What Kafka has per version of a request: one sum is what dashboards make of it.
FEWER_LABELS = {"kafka_network_requestmetrics_requests_total"}


def exported(bean: str) -> tuple[str, frozenset[str]] | None:
    """Return the name and the labels under which exporters show an attribute, None if they don't.

    The rules are those of Strimzi's configuration of the JMX exporter, names in lower case.
    """
    domain, properties, attribute = bean.split(":")
    pairs = dict(pair.split("=") for pair in properties.split(","))
    kind, name = pairs.pop("type"), pairs.pop("name", "")
    prefix = f"{domain}_{kind}_".replace(".", "_").replace("-", "_").lower()
    labels = frozenset(pairs)
    if not name:
        return prefix + attribute.replace("-", "_").lower(), labels
    if percent := re.match(r"(.+)Percent", name):
        if attribute not in {"MeanRate", "Value"}:
            return None
        return f"{prefix}{percent[1].lower()}_percent", labels
    name = name.replace("-", "_")
    if rate := re.match(r"(.+)PerSec", name):
        return (f"{prefix}{rate[1].lower()}_total", labels) if attribute == "Count" else None
    if attribute == "Count":
        return f"{prefix}{name.lower()}_count", labels
    if attribute.endswith("Percentile"):
        return prefix + name.lower(), labels | {"quantile"}
    return prefix + name.lower(), labels


@pytest.fixture(scope="module")
def kafka_names():
    names = {}
    for bean in BEANS.splitlines():
        if not bean.startswith("#") and (found := exported(bean)):
            names.setdefault(found[0], set()).add(found[1])
    return names


@pytest.fixture(scope="module")
def families():
    with Broker() as broker:
        broker.create_topic("t")
        broker.records("t")
        return broker.call(
            lambda: [
                (family.name, family.kind, [key for key, _ in family.samples])
                for family in broker.server.metrics.collect()
            ]
        )


FAMILY_1 = re.compile(r"kafka_(server|network|controller|log|cluster)_")


def test_every_name_of_family_1_is_one_of_kafka(families, kafka_names):
    of_kafka = [(name, kind, keys) for name, kind, keys in families if FAMILY_1.match(name)]
    assert len(of_kafka) > 30
    for name, kind, keys in of_kafka:
        assert name in kafka_names
        if kind == SUMMARY:
            assert f"{name}_count" in kafka_names
        for key in keys:
            labels = frozenset(re.findall(r'(\w+)="', key))
            if key.startswith(("_sum", "_count")):
                labels |= {"quantile"}
            if name not in FEWER_LABELS:
                # Kafka shows a failure per topic from the first one on; here it starts with 0.
                assert labels in kafka_names[name] or name.startswith(
                    "kafka_server_brokertopicmetrics_failed"
                ), (name, labels)


def test_counters_end_in_total_and_nothing_else_does(families):
    for name, kind, _ in families:
        assert (kind == COUNTER) == name.endswith("_total")


def test_metric_names_have_a_known_prefix(families):
    for name, _, _ in families:
        assert name.startswith(("kafka_", "barnabas_", "process_"))
