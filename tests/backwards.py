"""Pytest plugin: run the tests of each file in another order, for tests that need earlier ones.

``ORDER=reverse``, as without it, or a number that an order is drawn from::

    ORDER=7 pytest -p tests.backwards tests/broker
"""

from __future__ import annotations

import os
import random
from itertools import groupby

import pytest

REVERSE = "reverse"
ORDER = os.environ.get("ORDER", REVERSE)


def pytest_report_header() -> str:
    return f"ORDER={ORDER}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ordered: list[pytest.Item] = []
    for path, group in groupby(items, lambda item: item.path):
        of_file = [*group]
        if ORDER == REVERSE:
            of_file.reverse()
        else:
            random.Random(f"{ORDER} {path.name}").shuffle(of_file)
        ordered += of_file
    items[:] = ordered
