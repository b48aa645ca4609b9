"""Cases of a product, of which `make test` runs a part and `make nightly` the rest."""

from __future__ import annotations

import pytest


def case(*values: object, in_test: bool) -> object:
    """Return a case of a parametrized test, for the night only unless ``in_test``."""
    return pytest.param(*values, marks=() if in_test else pytest.mark.nightly)


BARNABAS_AND_KAFKA = (case("barnabas", in_test=True), case("kafka", in_test=False))
"""Parameters of a fixture that yields either broker: Apache Kafka for the night only."""
