"""The dashboards and alerts that are shipped ask only for what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from barnabas.spark_connector.monitoring.metrics_text import exposition
from barnabas.testing import Broker
from tests.broker.metrics.committing import commit
from tests.broker.metrics.in_cluster import families_in_cluster
from tests.broker.metrics.in_spark import KNOWN_QUERY
from tests.broker.metrics.promql import grouping_labels, metrics_of
from tests.broker.metrics.scrape import Scrape, scrape

DOCKER = Path(__file__).parents[3] / "docker"
DASHBOARDS = sorted((DOCKER / "grafana").glob("*.json"))
ALERTS = DOCKER / "prometheus" / "alerts.yml"

BY_PROMETHEUS = {"instance", "job"}
"""Labels that every series gets when it is scraped."""
UP = "up"
"""The one metric that Prometheus makes itself."""


@pytest.fixture(scope="module")
def emitted():
    """The names of all metrics, each with its labels, after every kind of traffic."""
    with Broker() as broker:
        broker.create_topic("t")
        broker.records("t")
        commit(broker, "g", "t", {0: 0})
        seen = scrape(broker)
    names: dict[str, set[str]] = {UP: set()}
    of_spark = Scrape(exposition([KNOWN_QUERY])).samples
    for name, labels in [*seen.samples, *families_in_cluster().samples, *of_spark]:
        names.setdefault(name, set()).update(label for label, _ in labels)
    return names


def panels(dashboard):
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", ())


def queries(dashboard):
    for panel in panels(dashboard):
        for target in panel.get("targets", ()):
            yield target["expr"], target["legendFormat"]


def variable_queries(dashboard):
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


by_name = pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)


def test_dashboards_have_their_file_names_as_uids():
    assert len(DASHBOARDS) == 5
    uids = [load(path)["uid"] for path in DASHBOARDS]
    assert sorted(uids) == [path.stem for path in DASHBOARDS]


def check(query, emitted):
    asked = metrics_of(query)
    assert asked, query
    for name, labels in asked.items():
        assert name in emitted, f"{name} in {query}"
        assert labels <= emitted[name] | BY_PROMETHEUS, query
    known = set().union(*(emitted[name] for name in asked)) | BY_PROMETHEUS
    assert grouping_labels(query) <= known, query


@by_name
def test_a_dashboard_asks_only_for_what_is_there(path, emitted):
    dashboard = load(path)
    found = list(queries(dashboard))
    assert len(found) >= 8
    for query, legend in found:
        check(query, emitted)
        shown = set(re.findall(r"\{\{(\w+)\}\}", legend))
        if " by (" in query:
            assert shown <= grouping_labels(query), query
        elif not query.startswith(("sum", "max", "histogram_quantile")):
            known = set().union(*(emitted[name] for name in metrics_of(query))) | BY_PROMETHEUS
            assert shown <= known, query


@by_name
def test_its_variables_can_be_filled(path, emitted):
    for query in variable_queries(load(path)):
        match = re.fullmatch(r"label_values\((\w+), (\w+)\)", query)
        assert match is not None
        assert match[1] in emitted
        assert match[2] in emitted[match[1]] | BY_PROMETHEUS


@by_name
def test_only_counters_are_asked_for_their_rate(path):
    for query, _ in queries(load(path)):
        for name in re.findall(r"\b(?:rate|increase)\((\w+)", query):
            is_disk_of_kafka = name.startswith("kafka_server_kafkaserver_linux_disk_")
            assert name.endswith(("_total", "_bucket", "_sum", "_count")) or is_disk_of_kafka


@by_name
def test_panels_do_not_overlap_and_have_their_own_numbers(path):
    taken = set()
    numbers = []
    for panel in load(path)["panels"]:
        place = panel["gridPos"]
        numbers.append(panel["id"])
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len(set(numbers)) == len(numbers)


def test_alerts_ask_only_for_what_is_there(emitted):
    (group,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    assert len(group["rules"]) >= 5
    for rule in group["rules"]:
        check(rule["expr"], emitted)
        assert rule["annotations"]["summary"]
    configuration = yaml.safe_load(ALERTS.with_name("prometheus.yml").read_text(encoding="utf-8"))
    assert configuration["rule_files"] == [ALERTS.name]
    jobs = {job["job_name"] for job in configuration["scrape_configs"]}
    named = {name for rule in group["rules"] for name in re.findall(r'job="(\w+)"', rule["expr"])}
    assert named <= jobs


@pytest.mark.parametrize(
    ("query", "metrics", "labels"),
    [
        ('sum by (a) (rate(x_total{b="c{d}",e=~"$f"}[5m]))', {"x_total": {"b", "e"}}, {"a"}),
        ("histogram_quantile(0.99, sum by (le) (rate(x_bucket[$r])))", {"x_bucket": set()}, {"le"}),
        ("a - b > 1e3 and on (c) d offset 5m", {"a": set(), "b": set(), "d": set()}, {"c"}),
        ("changes((a - b)[15m:1m]) == 0", {"a": set(), "b": set()}, set()),
    ],
    ids=["selector", "quantile", "operators", "subquery"],
)
def test_query_is_split_into_metrics_and_labels(query, metrics, labels):
    assert metrics_of(query) == metrics
    assert grouping_labels(query) == labels


# Queried by dashboards that people have for other brokers, with the labels that they select or
# group by; what is about Java or Kubernetes is left out.
STRIMZI_KAFKA = {
    "kafka_server_replicamanager_leadercount": set(),
    "kafka_server_replicamanager_partitioncount": set(),
    "kafka_server_replicamanager_underreplicatedpartitions": set(),
    "kafka_controller_kafkacontroller_activecontrollercount": set(),
    "kafka_controller_kafkacontroller_offlinepartitionscount": set(),
    "kafka_controller_controllerstats_uncleanleaderelections_total": set(),
    "kafka_cluster_partition_atminisr": set(),
    "kafka_cluster_partition_underminisr": set(),
    "kafka_server_brokertopicmetrics_bytesin_total": {"topic"},
    "kafka_server_brokertopicmetrics_bytesout_total": {"topic"},
    "kafka_server_brokertopicmetrics_messagesin_total": {"topic"},
    "kafka_server_brokertopicmetrics_totalproducerequests_total": {"topic"},
    "kafka_server_brokertopicmetrics_failedproducerequests_total": {"topic"},
    "kafka_server_brokertopicmetrics_totalfetchrequests_total": {"topic"},
    "kafka_server_brokertopicmetrics_failedfetchrequests_total": {"topic"},
    "kafka_network_socketserver_networkprocessoravgidle_percent": set(),
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent": set(),
    "kafka_server_kafkaserver_linux_disk_write_bytes": set(),
    "kafka_server_kafkaserver_linux_disk_read_bytes": set(),
    "kafka_server_socket_server_metrics_connection_count": {"listener"},
    "kafka_log_log_size": {"topic", "partition"},
}
KAFKA_EXPORTER = {
    "kafka_topic_partition_current_offset": {"topic", "partition"},
    "kafka_topic_partitions": {"topic"},
    "kafka_consumergroup_lag": {"consumergroup", "topic", "partition"},
    "kafka_consumergroup_lag_sum": {"consumergroup", "topic"},
    "kafka_consumergroup_current_offset": {"consumergroup", "topic", "partition"},
    "kafka_consumergroup_current_offset_sum": {"consumergroup", "topic"},
    "kafka_consumergroup_members": {"consumergroup"},
}


@pytest.mark.parametrize("asked", [STRIMZI_KAFKA, KAFKA_EXPORTER], ids=["strimzi", "exporter"])
def test_dashboards_for_other_brokers_find_what_they_ask_for(asked, emitted):
    for name, labels in asked.items():
        assert name in emitted
        assert labels <= emitted[name], name


def test_page_names_the_old_names_of_alerts():
    (group,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    old = {rule["alert"]: rule["labels"]["old_name"] for rule in group["rules"] if "labels" in rule}
    page = (DOCKER.parent / "docs" / "monitoring.md").read_text(encoding="utf-8")
    assert len(old) == 5
    assert (
        dict(re.findall(r"^\| `(Barnabas\w+)` \| `(Barnabas\w+)` \|$", page, re.MULTILINE)) == old
    )
