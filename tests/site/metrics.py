"""Write docs/metrics.md from the metrics of brokers and Spark drivers: ``make docs-metrics``.

With ``--check`` it only reports by its exit code whether the page is current.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from barnabas.broker.config.pages.generated_page import write_or_compare
from barnabas.broker.metrics.families import HISTOGRAM, SUMMARY, Family
from barnabas.spark_connector.monitoring.metrics_text import exposition as exposition_of_spark
from barnabas.testing import Broker, Cluster, World
from tests.broker.metrics.committing import commit
from tests.broker.metrics.in_spark import KNOWN_QUERY
from tests.certificates import self_signed
from tests.checkout import ROOT
from tests.storage.scripted_objects import clusters_with_objects

PAGE: Final = ROOT / "docs" / "metrics.md"

_LABEL: Final = re.compile(r'[{,](\w+)="')
_OF_DISTRIBUTIONS: Final = {HISTOGRAM: {"le"}, SUMMARY: {"quantile"}}
"""Labels of single samples of a distribution."""

_UNITS: Final = (
    (r"_timestamp_seconds|_start_time_seconds|_not_after_seconds", "seconds since 1970"),
    (r"_seconds(_total)?$", "seconds"),
    (r"timems$", "milliseconds"),
    (r"_bytes(_total)?$|_bytes(in|out)_total$|metrics_bytes(in|out)_total$|_log_size$", "bytes"),
    (r"_ratio$|_percent$", "share, 0 to 1"),
    (r"_(current|oldest|last_stable)_offset$|offset_sum$|(start|end)offset$", "offset"),
    (r"_lag(_max|_sum)?$|_laststableoffsetlag$|_lag_records$|_damaged_offsets$", "offsets"),
    (r"_partition_leader$", "node ID"),
    (r"_brokerstate$", "state"),
)
"""Units by the ends of names; other metrics count, or are 0 or 1."""

_INTRODUCTION: Final = """\
# Metrics

Written by `make docs-metrics` from the metrics that a broker, a broker of a cluster and a Spark
driver return; `make check` compares it. [Monitoring](monitoring.md) explains how to collect them.

A histogram or summary has samples `_count` and `_sum`, too, and its buckets have the label `le`,
its quantiles `quantile`. Buckets of durations are powers of two, from 1 us to 34 s. Counters begin
at 0 with the process.
"""

_PARTS: Final = (
    (
        "Metrics of Barnabas",
        "Those with `tls` in their names need a listener with TLS.",
        ("barnabas_",),
    ),
    (
        "Metrics with Kafka's names",
        "The usual rules of the JMX exporter give these names to the MBeans of Apache Kafka.",
        ("kafka_server_", "kafka_network_", "kafka_log_", "kafka_controller_", "kafka_cluster_"),
    ),
    (
        "Metrics with the names of kafka_exporter",
        "",
        ("kafka_",),
    ),
    (
        "Metrics of the process",
        "The names are those of Prometheus' client libraries.",
        ("process_",),
    ),
)
"""Title, introduction and prefixes of each part; each metric is in the first part that fits."""


class Metric(NamedTuple):
    """One row of the page."""

    name: str
    kind: str
    labels: tuple[str, ...]
    doc: str

    @property
    def unit(self) -> str:
        """Unit of the value."""
        for pattern, unit in _UNITS:
            if re.search(pattern, self.name):
                return unit
        if re.match(r"[01]\b|Always", self.doc) and self.kind == "gauge":
            return "0 or 1"
        return "count"


def alone() -> dict[str, Metric]:
    """Return the metrics of a broker with TLS that is alone, by name."""
    credential = self_signed()
    settings = {
        "listeners": "PLAINTEXT://localhost:0,SSL://localhost:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": credential.key_pem(),
        "ssl.keystore.certificate.chain": credential.chain_pem,
    }
    with World(), Broker(config=settings) as broker:
        broker.create_topic("t")
        broker.records("t")
        commit(broker, "g", "t", {0: 0})
        return broker.call(lambda: _metrics(broker.server.metrics.collect()))


def in_cluster() -> dict[str, Metric]:
    """Return the metrics of a broker of a cluster, by name."""
    with World(), clusters_with_objects(), Cluster(brokers=1) as cluster:
        cluster.create_topic("t")
        (broker,) = cluster.brokers
        markers = broker.server.transactions.remote_markers
        markers.owed_by_node = lambda: {2: 1}  # type: ignore[method-assign]
        return broker.call(lambda: _metrics(broker.server.metrics.collect()))


def of_spark() -> dict[str, Metric]:
    """Return the metrics of a Spark driver, by name."""
    found: dict[str, Metric] = {}
    docs: dict[str, str] = {}
    for line in exposition_of_spark([KNOWN_QUERY]).splitlines():
        if line.startswith("# HELP "):
            _, _, name, doc = line.split(" ", 3)
            docs[name] = doc
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
        else:
            found[name] = Metric(name, kind, tuple(_LABEL.findall(line)), docs[name])
    return found


def _metrics(families: Iterable[Family]) -> dict[str, Metric]:
    found = {}
    for family in families:
        labels: dict[str, None] = {}
        for suffix, _ in family.samples:
            labels |= dict.fromkeys(_LABEL.findall(suffix))
        shown = tuple(each for each in labels if each not in _OF_DISTRIBUTIONS.get(family.kind, ()))
        found[family.name] = Metric(family.name, family.kind, shown, family.doc)
    return found


def page() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    single, others = alone(), in_cluster()
    # Some labels have values in a cluster only.
    left = {
        name: each._replace(labels=others.get(name, each).labels or each.labels)
        for name, each in single.items()
    }
    for title, introduction, prefixes in _PARTS:
        yield f"## {title}\n"
        if introduction:
            yield f"{introduction}\n"
        chosen = [left.pop(name) for name in list(left) if name.startswith(prefixes)]
        yield from _table(chosen)
        yield ""
    assert not left, left
    yield "## Metrics of a broker in a cluster\n"
    yield "A broker of a [cluster](cluster.md) has these, too.\n"
    yield from _table(each for name, each in others.items() if name not in single)
    yield "\n## Metrics of a Spark driver\n"
    yield "[Spark drivers](monitoring.md#spark-drivers) return these at a port of their own.\n"
    yield from _table(of_spark().values())


def _table(metrics: Iterable[Metric]) -> Iterator[str]:
    yield "| Name | Type | Labels | Unit | Meaning |"
    yield "|---|---|---|---|---|"
    for each in metrics:
        labels = ", ".join(f"`{label}`" for label in each.labels)
        yield f"| `{each.name}` | {each.kind} | {labels} | {each.unit} | {each.doc} |"


def main() -> int:
    """Write the page, or compare it; return the exit code."""
    return write_or_compare(PAGE, page(), module="tests.site.metrics", target="docs-metrics")


if __name__ == "__main__":
    # The certificate is newer than the world, and the broker warns.
    logging.disable(logging.CRITICAL)
    sys.exit(main())
