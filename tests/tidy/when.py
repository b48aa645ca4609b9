"""A pytest plugin: prints for each case that was collected whether only `make nightly` runs it."""

import pytest


def pytest_collection_finish(session: pytest.Session) -> None:
    """Print a line for each case."""
    for item in session.items:
        when = "nightly" if item.get_closest_marker("nightly") else "test"
        print(f"\nwhen: {when} {item.nodeid}", end="")
