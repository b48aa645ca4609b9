"""What an operator is told when a broker ends by itself."""

import pytest

from barnabas.broker.cluster.membership.membership import NodeIdTaken
from barnabas.broker.cluster.start.exit_reasons import words_of_end
from barnabas.broker.config.types import ConfigError
from barnabas.storage.errors import StoreUnusable
from barnabas.storage.metastore.interface import MetaStoreError

UNSAFE = "what was written is not safe"


@pytest.mark.parametrize("error", [OSError(5, "I/O error"), MetaStoreError("torn"), KeyError("a")])
def test_what_nobody_can_vouch_for_is_said_to_be_unsafe(error):
    assert words_of_end(error) == f"{UNSAFE}: {error!r}"


@pytest.mark.parametrize(
    "error",
    [
        NodeIdTaken("another broker has joined the cluster with node.id=5"),
        StoreUnusable("the schema is of a later release"),
        ConfigError("log.retention.ms", "x", "not a number"),
    ],
)
def test_what_does_no_harm_to_data_is_said_as_it_is(error):
    words = words_of_end(error)
    assert words.endswith(str(error))
    assert UNSAFE not in words
