from typing import ClassVar

import pytest

from barnabas.spark_connector.errors import Fenced, TransactionLost
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.spark_connector.sinks import kept_decider
from barnabas.spark_connector.sinks.kept_decider import abort_with_decider, commit_with_decider

OPTIONS = SinkOptions("localhost:9", "sink")


class FakeDecider:
    made: ClassVar[list["FakeDecider"]] = []

    def __init__(self, options, query_id):
        self.name = options.sink_id, query_id
        self.is_closed = False
        self.made.append(self)

    def close(self):
        self.is_closed = True


@pytest.fixture(autouse=True)
def made(monkeypatch):
    monkeypatch.setattr(FakeDecider, "made", [])
    monkeypatch.setattr(kept_decider, "Decider", FakeDecider)
    monkeypatch.setattr(kept_decider, "_kept", [])
    return FakeDecider.made


def nothing(_decider):
    pass


def failing_with(error):
    def fail(_decider):
        raise error

    return fail


def test_a_decider_is_kept_for_the_next_batch(made):
    used = []
    for batch_id in (5, 6, 7):
        commit_with_decider(OPTIONS, "query", batch_id, used.append)
    assert used == [made[0]] * 3
    assert len(made) == 1
    assert not made[0].is_closed


def test_decider_that_skipped_a_batch_is_replaced(made):
    for batch_id in (5, 7, 7):
        commit_with_decider(OPTIONS, "query", batch_id, nothing)
    assert [each.is_closed for each in made] == [True, True, False]


def test_only_the_last_one_is_kept(made):
    for query_id in ("one", "two", "one"):
        commit_with_decider(OPTIONS, query_id, 0, nothing)
    assert [each.name[1] for each in made] == ["one", "two", "one"]
    assert [each.is_closed for each in made] == [True, True, False]


def test_decider_of_another_query_or_sink_is_replaced(made):
    other = SinkOptions("localhost:9", "other")
    for batch_id, (options, query_id) in enumerate(
        [(OPTIONS, "one"), (OPTIONS, "two"), (other, "two")]
    ):
        commit_with_decider(options, query_id, batch_id, nothing)
    assert [each.is_closed for each in made] == [True, True, False]


def test_failed_decider_is_not_reused(made):
    commit_with_decider(OPTIONS, "query", 0, nothing)
    with pytest.raises(TransactionLost):
        commit_with_decider(OPTIONS, "query", 1, failing_with(TransactionLost("gone")))
    assert made[0].is_closed
    commit_with_decider(OPTIONS, "query", 1, nothing)
    assert len(made) == 2


def test_fenced_decider_gives_up_and_aborts(made):
    """The fenced decider must spare the current transactions; a new one would take the sink."""
    aborted = []
    commit_with_decider(OPTIONS, "query", 0, nothing)
    with pytest.raises(Fenced):
        commit_with_decider(OPTIONS, "query", 1, failing_with(Fenced("another driver")))
    abort_with_decider(OPTIONS, "query", aborted.append)
    assert aborted == made
    assert made[0].is_closed


def test_restarted_query_is_not_fenced_forever(made):
    commit_with_decider(OPTIONS, "query", 0, nothing)
    with pytest.raises(Fenced):
        commit_with_decider(OPTIONS, "query", 1, failing_with(Fenced("another driver")))
    commit_with_decider(OPTIONS, "query", 1, nothing)
    assert [each.is_closed for each in made] == [True, False]


@pytest.mark.parametrize("query_id", ["query", None], ids=["known", "unknown"])
def test_the_kept_one_aborts_and_is_not_kept(made, query_id):
    aborted = []
    commit_with_decider(OPTIONS, "query", 0, nothing)
    abort_with_decider(OPTIONS, query_id, aborted.append)
    assert aborted == [made[0]]
    assert made[0].is_closed
    abort_with_decider(OPTIONS, query_id, aborted.append)
    assert aborted == made
    assert [each.is_closed for each in made] == [True, True]
