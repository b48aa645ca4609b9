from typing import ClassVar

import pytest

from spark_connector import kept_decider
from spark_connector.errors import Fenced, TransactionLost
from spark_connector.kept_decider import with_decider
from spark_connector.options import SinkOptions

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


def test_a_decider_is_kept_for_the_next_batch(made):
    used = []
    with_decider(OPTIONS, "query", used.append)
    with_decider(OPTIONS, "query", used.append)
    assert used == [made[0], made[0]]
    assert len(made) == 1
    assert not made[0].is_closed


def test_only_the_last_one_is_kept(made):
    for query_id in ("one", "two", "one"):
        with_decider(OPTIONS, query_id, lambda decider: None)
    assert [each.name[1] for each in made] == ["one", "two", "one"]
    assert [each.is_closed for each in made] == [True, True, False]


def test_whoever_failed_is_not_used_again(made):
    def fail(_decider):
        raise TransactionLost("gone")

    with_decider(OPTIONS, "query", lambda decider: None)
    with pytest.raises(TransactionLost):
        with_decider(OPTIONS, "query", fail)
    assert made[0].is_closed
    with_decider(OPTIONS, "query", lambda decider: None)
    assert len(made) == 2


def test_a_kept_decider_that_was_fenced_makes_way_for_a_new_one(made):
    def fenced_at_first(decider):
        if decider is made[0] and kept:
            raise Fenced("another worker")
        kept.append(decider)

    kept = []
    with_decider(OPTIONS, "query", fenced_at_first)
    with_decider(OPTIONS, "query", fenced_at_first)
    assert kept == made
    assert [each.is_closed for each in made] == [True, False]


def test_a_new_decider_that_is_fenced_is_fenced(made):
    def fenced(_decider):
        raise Fenced("another driver")

    with pytest.raises(Fenced):
        with_decider(OPTIONS, "query", fenced)
    assert len(made) == 1
    assert made[0].is_closed
