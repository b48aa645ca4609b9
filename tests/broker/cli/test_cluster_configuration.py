"""Commands on the stores of a cluster name the key that the configuration lacks."""

import pytest

from barnabas.broker.config.cluster import METADATA, STORAGE
from tests.broker.cli.inline import run_inline

METADATA_GIVEN = "--override=barnabas.metadata=postgresql://database-1/barnabas"
WITH_BOTH = (
    ("check", "--cluster"),
    ("objects", "sweep", "--cluster", "ID", "--yes"),
)
WITH_DATABASE = (
    ("cluster", "cost"),
    ("cluster", "import", "directory"),
    ("cluster", "export", "directory"),
    ("cluster", "reopen"),
)


@pytest.mark.parametrize("words", [*WITH_BOTH, *WITH_DATABASE], ids=" ".join)
def test_command_without_the_address_of_the_cluster_is_refused(monkeypatch, words):
    ended = run_inline(monkeypatch, words)
    keys = f"{METADATA} and {STORAGE}" if words in WITH_BOTH else METADATA
    assert ended.exit_code == 2
    assert ended.stderr == f"barnabas: name the cluster: set {keys}; {METADATA} is not set\n"


@pytest.mark.parametrize("words", WITH_BOTH, ids=" ".join)
def test_command_without_the_object_store_is_refused(monkeypatch, words):
    ended = run_inline(monkeypatch, [*words, METADATA_GIVEN])
    assert ended.exit_code == 2
    assert ended.stderr.endswith(f"set {METADATA} and {STORAGE}; {STORAGE} is not set\n")
