"""Numbers of seeds and kills of the crash tests: some in `make test`, all in `make nightly`."""

from __future__ import annotations

import os

import pytest

from tests.products import case

REPEATED = os.environ.get("BARNABAS_CRASH_SEED")
"""The seed of the failure that is repeated, or `None`."""


def seeds(in_test: int, at_night: int) -> list[object]:
    """Return the cases of a test of each seed, ``in_test`` of them in `make test`."""
    if REPEATED is not None:
        return [int(REPEATED)]
    return [case(seed, in_test=seed < in_test) for seed in range(at_night)]


def amounts(name: str, in_test: int, at_night: int) -> pytest.MarkDecorator:
    """Return the mark of a test that gets the number ``name`` of what it does."""
    cases = [case(in_test, in_test=True), case(at_night, in_test=False)]
    return pytest.mark.parametrize(name, cases)
