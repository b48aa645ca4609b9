"""Messages for an operator about a broker that stops itself."""

import pytest

from barnabas.broker.cluster.membership.membership import NodeIdTaken
from barnabas.broker.cluster.start.exit_reasons import words_of_end
from barnabas.broker.config.types import ConfigError
from barnabas.storage.errors import StoreUnusable
from barnabas.storage.metastore.interface import MetaStoreError

UNSAFE = "what was written is not safe"


@pytest.mark.parametrize("error", [OSError(5, "I/O error"), MetaStoreError("torn"), KeyError("a")])
def test_unexpected_errors_are_reported_as_unsafe(error):
    assert words_of_end(error) == f"{UNSAFE}: {error!r}"


@pytest.mark.parametrize(
    "error",
    [
        NodeIdTaken("another broker has joined the cluster with node.id=5"),
        StoreUnusable("the schema is of a later release"),
        ConfigError("log.retention.ms", "x", "not a number"),
    ],
)
def test_harmless_errors_are_reported_without_a_warning(error):
    words = words_of_end(error)
    assert words.endswith(str(error))
    assert UNSAFE not in words
