"""A scrape of a broker in this process, read by prometheus-client's parser."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from barnabas.broker.metrics.exposition import exposition


class Scrape:
    """All samples of one scrape; ``scrape("name", label="x")`` is the value of one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.families = list(text_string_to_metric_families(text))
        self.samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: object) -> float:
        return self.samples[name, frozenset((key, str(value)) for key, value in labels.items())]

    @property
    def names(self) -> set[str]:
        """The names that a query can ask for."""
        return {name for name, _ in self.samples}


def scrape(broker) -> Scrape:
    """Scrape a test broker without going through HTTP."""
    return Scrape("".join(broker.call(lambda: list(exposition(broker.server.metrics.collect())))))
