"""newQuery and acceptLostBatch: each state of the ledger with each value, and each holds once."""

import re
import uuid

import pytest

from barnabas.spark_connector.errors import CheckpointMismatch
from barnabas.spark_connector.settings.acceptance import LostBatch, NewQuery
from barnabas.spark_connector.sinks import kept_decider, starting
from barnabas.spark_connector.sinks.starting import find_refusal
from barnabas.storage.runtime.chance import random_bytes
from barnabas.testing import Broker
from tests.spark_connector.checkpointed import (
    KINDS,
    TWO_PHASE,
    Driver,
    SparkCheckpoint,
    committed,
    options,
)

STRANGER = str(uuid.uuid4())


@pytest.fixture(scope="module")
def broker():
    with Broker(config={"transaction.two.phase.commit.enable": "true"}) as running:
        for topic in ("in", "out"):
            running.create_topic(topic, 2)
        yield running


@pytest.fixture(autouse=True)
def _nothing_is_kept(monkeypatch):
    monkeypatch.setattr(kept_decider, "_kept", [])
    monkeypatch.setattr(starting, "_kept", [])
    yield
    while kept_decider._kept:
        kept_decider._kept.pop().decider.close()
    while starting._kept:
        starting._kept.pop().cluster.close()


@pytest.fixture
def query(broker, tmp_path):
    """Make queries of one sink; each is a directory with a checkpoint."""
    made = []
    sink_id = f"sink-{random_bytes(8).hex()}"

    class Query:
        def __init__(self, name):
            self.files = SparkCheckpoint(tmp_path / f"{sink_id}-{name}")
            self.id = self.files.query_id

        def options(self, **more):
            return options(broker, sink_id, self.files, topic=topic, **more)

        def run(self, last, kind=TWO_PHASE, **more):
            driver = Driver(kind, self.options(**more), self.files)
            made.append(driver)
            driver.run(last)

        def skip_to(self, batch_id):
            """Finish batches as another sink does: without the ledger."""
            for each in range(self.files.first_batch(), batch_id):
                self.files.plan(each)
                self.files.finish(each)

        def refusal(self, **more):
            """Return the refusal of the data source, or `None`; changes nothing in the ledger."""
            found = find_refusal(self.options(**more))
            assert found is None or type(found) is CheckpointMismatch, found
            return found

    topic = f"out-{sink_id}"
    broker.create_topic(topic)
    Query.topic = topic
    yield Query
    for each in made:
        each.close()


def named_in(refusal, option):
    """Return the value of an option that the sentence says to set."""
    found = re.search(rf"set the option {option} to (\S+) to ", str(refusal))
    assert found, refusal
    return found[1]


# A state: queries that have written, the batch that the checkpoint begins with, the names needed.
STATES = {
    "nothing": ("", 0, ""),
    "one-query": ("A", 0, "A"),
    "two-queries": ("AB", 0, "A,B"),
    "no-ledger-and-batch-2": ("", 2, "C:2"),
    "one-query-and-batch-2": ("A", 2, "A,C:2"),
    "two-queries-and-batch-2": ("AB", 2, "A,B,C:2"),
    "itself": ("C", 0, ""),
    "itself-and-another": ("AC", 0, ""),
}
VALUES = (
    *("A", "B", "A,B", "C", "C:2", "C:1", "A:2", "A,C:2", "B,C:2", "A,B,C:2", "A,B,C:1"),
    *("X", "A,X", "A,B,C:2,X"),
)
"""Names of queries, which stand for their ids; X is no query of the sink."""


@pytest.mark.parametrize("state", STATES)
def test_new_query_is_accepted_if_the_value_names_all_that_is_given_up(state, query):
    written, skipped, needed = STATES[state]
    queries = {name: query(name) for name in "ABC"}
    so_far = []
    for name in written:
        queries[name].run(0, newQuery=",".join(so_far) or "false")
        so_far.append(queries[name].id)
    ids = {name: each.id for name, each in queries.items()} | {"X": STRANGER}

    def with_ids(value):
        return re.sub("[ABCX]", lambda found: ids[found[0]], value)

    new = queries["C"]
    new.skip_to(skipped)
    needs = set(filter(None, needed.split(",")))
    for value in VALUES:
        refusal = new.refusal(newQuery=with_ids(value).upper())
        assert (refusal is None) == (needs <= set(value.split(","))), (value, refusal)
    assert new.refusal(newQuery="true") is None
    for given in ({}, {"newQuery": "false"}):
        refusal = new.refusal(**given)
        assert (refusal is None) == (not needed)
        if refusal is not None:
            wanted = named_in(refusal, "newQuery")
            assert set(wanted.split(",")) == set(with_ids(needed).split(","))
            assert new.refusal(newQuery=wanted) is None


@pytest.mark.parametrize("kind", KINDS)
def test_new_query_that_stays_in_the_file_holds_once(broker, query, kind):
    first, second, third = query("first"), query("second"), query("third")
    first.run(0, kind)
    value = named_in(second.refusal(), "newQuery")
    assert value == first.id
    second.run(0, kind, newQuery=value)
    second.run(1, kind, newQuery=value)
    with pytest.raises(CheckpointMismatch) as refused:
        third.run(0, kind, newQuery=value)
    assert set(named_in(refused.value, "newQuery").split(",")) == {first.id, second.id}
    assert committed(broker, query.topic) == {"0": 2, "1": 1}
    third.run(0, kind, newQuery=f"{second.id}, {first.id}")
    assert committed(broker, query.topic) == {"0": 3, "1": 1}


LOST = {"": False, "3": True, "2": False, "4": False, "Q:3": True, "Q:2": False, "X:3": False}


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_batch_is_accepted_for_its_query_and_once(broker, query, kind):
    only = query("only")
    only.run(1, kind)
    only.skip_to(4)
    ids = {"Q": only.id, "X": STRANGER}
    for value, is_accepted in LOST.items():
        given = re.sub("[QX]", lambda found: ids[found[0]], value)
        refusal = only.refusal(**({"acceptLostBatch": given} if given else {}))
        assert (refusal is None) == is_accepted, value
    value = named_in(only.refusal(), "acceptLostBatch")
    assert value == f"{only.id}:3"
    only.run(4, kind, acceptLostBatch=value)
    only.run(5, kind, acceptLostBatch=value)
    only.skip_to(8)
    assert named_in(only.refusal(acceptLostBatch=value), "acceptLostBatch") == f"{only.id}:7"
    assert committed(broker, query.topic) == {"0": 1, "1": 1, "4": 1, "5": 1}


def test_values_are_read_in_any_case_and_with_spaces():
    ids = [str(uuid.uuid4()) for _ in range(2)]
    assert NewQuery.parse(f" {ids[0].upper()} ,{ids[1]}:5 ") == NewQuery.parse(
        f"{ids[0]},{ids[1]}:5"
    )
    assert str(NewQuery.parse(ids[0])) == ids[0]
    assert LostBatch.parse(f" {ids[0].upper()}:5").accepts(ids[0], 5)
