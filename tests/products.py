"""Cases of a product, of which `make test` runs a part and `make nightly` the rest."""

from __future__ import annotations

import pytest


def case(*values: object, in_test: bool) -> object:
    """Return a case of a parametrized test, for the night only unless ``in_test``."""
    return pytest.param(*values, marks=() if in_test else pytest.mark.nightly)


def for_the_night(*, beside: str) -> pytest.MarkDecorator:
    """Return the mark of a test function that `make test` leaves out as a whole.

    ``beside`` is the function, as ``file::function``, that runs in `make test` and proves the same
    in a cheaper way.
    """
    return pytest.mark.nightly(beside=beside)


BARNABAS_AND_KAFKA = (case("barnabas", in_test=True), case("kafka", in_test=False))
"""Parameters of a fixture that yields either broker: Apache Kafka for the night only."""
