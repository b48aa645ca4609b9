"""Every test of Fetch once more, with each fetch taken in slices of one partition."""

from __future__ import annotations

import pytest

from barnabas.broker.handlers.records import fetch, fetch_reader
from tests.broker.handlers.test_fetch import *  # noqa: F403


@pytest.fixture(autouse=True)
def slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "PARTITIONS_AT_ONCE", 0)
    monkeypatch.setattr(fetch_reader, "PARTITIONS_PER_SLICE", 1)
