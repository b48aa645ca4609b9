"""Metric families, and the registry of all collectors of a broker.

Nothing is counted here. A collector is a function that reads integers kept elsewhere and returns
families; it runs on the loop, once per scrape. A new part of the broker calls
``register(collector)``::

    def collect() -> Iterator[Family]:
        yield Family(
            "barnabas_transactions_open",
            GAUGE,
            "Open transactions.",
            ((labels(state=state), count) for state, count in counted.items()),
        )

Samples are taken from their iterable in pieces while the response is sent, with turns of the loop
in between: iterate over a copy of data that can change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"
SUMMARY: Final = "summary"

Number: TypeAlias = int | float
Sample: TypeAlias = tuple[str, Number]
"""Suffix and labels after the family's name, and the value."""


class Family:
    """One metric: its name, kind and meaning, and the samples of one scrape."""

    __slots__ = ("doc", "kind", "name", "samples")

    def __init__(self, name: str, kind: str, doc: str, samples: Iterable[Sample]) -> None:
        assert kind != COUNTER or name.endswith("_total"), f"a counter is called ..._total: {name}"
        assert kind == COUNTER or not name.endswith("_total"), f"only a counter is _total: {name}"
        self.name = name
        self.kind = kind
        self.doc = doc
        self.samples = samples


Collector: TypeAlias = Callable[[], Iterable[Family]]


OLD_NAMES: Final = {
    "barnabas_cluster_store_unavailable": "barnabas_cluster_store_away",
    "barnabas_producers_delayed": "barnabas_producers_held_back",
    "barnabas_transaction_requests_delayed_total": "barnabas_transaction_requests_held_total",
    "barnabas_transaction_requests_timed_out_total": "barnabas_transaction_requests_given_up_total",
}
"""Former names of metrics, which dashboards of users may have: collected under both names."""


class Metrics:
    """The collectors of one broker."""

    def __init__(self) -> None:
        self._collectors: list[Collector] = []

    def register(self, collector: Collector) -> None:
        """Call ``collector`` at each scrape, after the ones registered before."""
        self._collectors.append(collector)

    def collect(self) -> Iterator[Family]:
        """Yield every family; each name comes once, and old names follow the present ones."""
        seen: set[str] = set()
        for collector in self._collectors:
            for family in collector():
                assert family.name not in seen, f"{family.name} is collected twice"
                seen.add(family.name)
                yield family
                if family.name in OLD_NAMES:
                    doc = f"{family.doc} Old name of {family.name}."
                    yield Family(OLD_NAMES[family.name], family.kind, doc, family.samples)


def value(name: str, kind: str, doc: str, number: Number) -> Family:
    """Return a family of one sample without labels."""
    return Family(name, kind, doc, (("", number),))


def labels(**names: object) -> str:
    """Return labels as they are written: ``{topic="orders",partition="0"}``."""
    pairs = ",".join(f'{name}="{escape(str(text))}"' for name, text in names.items())
    return f"{{{pairs}}}"


def escape(text: str) -> str:
    """Return a label's value as it is written between its quotes."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
