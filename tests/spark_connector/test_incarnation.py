"""Topics and brokers that were recreated under a checkpoint, and checkpoints that are not
current."""

import shutil

import pytest

from barnabas.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.spark_connector.checkpoint import checkpoint
from barnabas.spark_connector.cluster.cluster import Cluster
from barnabas.spark_connector.cluster.incarnation import UNKNOWN, of_text
from barnabas.spark_connector.errors import CheckpointMismatch, Overtaken, Recreated, TopicMissing
from barnabas.spark_connector.failpoints import Failpoint
from barnabas.spark_connector.ledger import entries, ownership
from barnabas.spark_connector.ledger.ledger import Ledger
from barnabas.spark_connector.sinks import kept_decider, starting
from barnabas.testing import Broker
from tests.spark_connector.checkpointed import (
    DATA_SOURCE,
    KINDS,
    SINGLE,
    TWO_PHASE,
    Driver,
    SparkCheckpoint,
    cluster_id_of,
    committed,
    delete,
    id_of,
    options,
    recreate,
    written,
)

PINNING = {"transaction.two.phase.commit.enable": "true"}


@pytest.fixture
def broker():
    with Broker(config=PINNING) as running:
        yield with_topics(running)


@pytest.fixture
def another():
    with Broker(config=PINNING) as running:
        yield with_topics(running)


def with_topics(broker):
    for topic in ("in", "out"):
        broker.create_topic(topic, 2)
    return broker


@pytest.fixture
def files(tmp_path):
    return SparkCheckpoint(tmp_path / "checkpoint")


@pytest.fixture(autouse=True)
def _nothing_is_kept(monkeypatch):
    monkeypatch.setattr(kept_decider, "_kept", [])
    monkeypatch.setattr(starting, "_kept", [])


@pytest.fixture
def start(broker, files):
    """Start drivers; they are closed at the end."""
    made = []

    def start_one(kind, at=None, checkpoint=None, sink_id="sink", **more):
        chosen = checkpoint or files
        made.append(Driver(kind, options(at or broker, sink_id, chosen, **more), chosen))
        return made[-1]

    yield start_one
    for each in made:
        each.close()
    end_workers()


def end_workers():
    """Close the connections that workers of a data source keep from batch to batch."""
    while kept_decider._kept:
        kept_decider._kept.pop().decider.close()
    while starting._kept:
        starting._kept.pop().cluster.close()


def expected(*batches):
    return {str(each): 1 for each in batches}


def entry_of(broker, files, query_id=None):
    with Cluster(broker.bootstrap_servers, client_id="test", timeout_ms=10_000) as cluster:
        return Ledger(cluster, "ledger").read("sink", query_id or files.query_id)


# ------------------------------------------------------------------------------------ what is noted


@pytest.mark.parametrize("kind", KINDS)
def test_the_ledger_and_the_checkpoint_say_which_topics_they_are_about(broker, files, start, kind):
    start(kind).run(1)
    found = entry_of(broker, files).incarnation
    cluster_id = cluster_id_of(broker)
    assert found.source == (cluster_id, {"in": id_of(broker, "in")})
    ids = {"out": id_of(broker, "out"), "ledger": id_of(broker, "ledger")}
    assert found.sink == (cluster_id, ids)
    location = str(files.directory)
    assert of_text(checkpoint.incarnation(location), location) == found


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_of_before_is_filled_in(broker, files, start, monkeypatch, kind):
    with monkeypatch.context() as patch:
        as_before = entries.encode

        def encode(entry):
            text = as_before(entry._replace(incarnation=UNKNOWN))
            return text.replace(b'"version":2', b'"version":1')

        patch.setattr("barnabas.spark_connector.ledger.entries.encode", encode)
        start(kind).run(0)
    (files.directory / checkpoint.INCARNATION).unlink()
    end_workers()
    assert entry_of(broker, files).incarnation == UNKNOWN
    recreate(broker, "in")  # No sink can notice it.
    start(kind).run(1)
    assert entry_of(broker, files).incarnation.source.topics == {"in": id_of(broker, "in")}
    recreate(broker, "in")
    with pytest.raises(Recreated):
        start(kind).run(2)


@pytest.mark.parametrize("kind", KINDS)
def test_more_topics_and_more_partitions_are_no_change(broker, files, start, kind):
    running = start(kind)
    running.run(0)
    broker.create_topic("in-2")
    files.topics = ("in", "in-2")
    with Cluster(broker.bootstrap_servers, client_id="test", timeout_ms=10_000) as cluster:
        request = CreatePartitionsRequest([CreatePartitionsTopic("in", 5, None)], 10_000)
        answer = cluster.ask("Adding partitions", cluster.controller, CREATE_PARTITIONS, request)
        assert not answer.results[0].error_code
    running.run(1)
    start(kind).run(2)
    assert committed(broker) == expected(0, 1, 2)
    ids = {topic: id_of(broker, topic) for topic in ("in", "in-2")}
    assert entry_of(broker, files).incarnation.source.topics == ids
    recreate(broker, "in-2")
    with pytest.raises(Recreated, match="the source's topic in-2"):
        start(kind).run(3)


def test_a_topic_that_the_source_has_left_is_forgotten(broker, files, start):
    """Spark begins at its first offset when it finds it again."""
    broker.create_topic("in-2")
    files.topics = ("in", "in-2")
    start(SINGLE).run(0)
    delete(broker, "in-2")
    files.topics = ("in",)
    start(SINGLE).run(1)
    broker.create_topic("in-2")
    files.topics = ("in", "in-2")
    start(SINGLE).run(2)
    assert committed(broker) == expected(0, 1, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_topics_that_rows_name_are_remembered(broker, files, start, kind):
    for topic in ("out-0", "out-1", "out-2"):
        broker.create_topic(topic)
    running = start(kind, topic="")
    running.run(1)
    found = entry_of(broker, files).incarnation.sink.topics
    assert found == {name: id_of(broker, name) for name in ("out-0", "out-1", "ledger")}
    recreate(broker, "out-0")
    with pytest.raises(Recreated, match="the sink's topic out-0 had the id"):
        running.run(2)
    assert written(broker, "out-2") == 0
    start(kind, topic="", acceptIds=id_of(broker, "out-0")).run(2)
    delete(broker, "out-1")  # No sink writes to it any more.
    broker.create_topic("out-3")
    start(kind, topic="").run(3)
    assert committed(broker, "out-3") == expected(3)


# --------------------------------------------------------------------- recreated topics and brokers


@pytest.mark.parametrize("topic", ["in", "out", "ledger"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_that_was_made_again_between_two_runs_is_refused(broker, start, kind, topic):
    start(kind).run(1)
    before = id_of(broker, topic)
    recreate(broker, topic) if topic != "ledger" else delete(broker, topic)
    count = written(broker)
    with pytest.raises(Recreated) as refused:
        start(kind).run(2)
    now = id_of(broker, topic)
    assert f"topic {topic} had the id {before} and has {now}," in str(refused.value)
    assert f"set acceptIds={now} to continue" in str(refused.value)
    with pytest.raises(Recreated):
        start(kind).take()
    assert written(broker) == count


@pytest.mark.parametrize("topic", ["in", "out", "ledger"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_that_is_made_again_between_two_batches_is_refused(broker, start, kind, topic):
    running = start(kind)
    running.run(1)
    if topic == "ledger":
        delete(broker, topic)
        broker.create_topic(topic, 1, {"cleanup.policy": "compact"})
    else:
        recreate(broker, topic)
    count = written(broker)
    with pytest.raises(Recreated, match=f"topic {topic} had the id"):
        running.run(2)
    assert written(broker) == count


@pytest.mark.parametrize("topic", ["in", "out"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_that_is_made_again_in_the_middle_of_a_batch_is_refused(
    broker, start, monkeypatch, kind, topic
):
    running = start(kind)
    running.run(0)
    write_decision = ownership.Ownership.write_decision

    def too_late(owner, *decision):
        recreate(broker, topic)
        return write_decision(owner, *decision)

    with monkeypatch.context() as patch:
        patch.setattr(ownership.Ownership, "write_decision", too_late)
        with pytest.raises(Recreated, match=f"topic {topic} had the id"):
            running.run(1)
    assert committed(broker) == (expected(0) if topic == "in" else {})


@pytest.mark.parametrize("topic", ["out", "ledger"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_that_was_deleted_between_two_batches_is_missed(
    broker, start, monkeypatch, kind, topic
):
    monkeypatch.setattr("barnabas.spark_connector.cluster.cluster.MISSING_TOPIC_MS", 200)
    running = start(kind)
    running.run(1)
    delete(broker, topic)
    with pytest.raises((TopicMissing, Recreated), match=f"topic {topic} "):
        running.run(2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_that_was_made_again_ahead_of_the_first_decision_is_refused(
    broker, files, start, monkeypatch, kind
):
    """The query had planned a batch, whose plan contains the start of the next read."""
    with monkeypatch.context() as patch:

        def crash(*_decision):
            raise Failpoint("ahead of the first decision")

        patch.setattr(ownership.Ownership, "write_decision", crash)
        with pytest.raises(Failpoint):
            start(kind).run(0)
    recreate(broker, "in")
    with pytest.raises(Recreated, match="the source's topic in had"):
        start(kind).run(0)
    assert committed(broker) == {}


@pytest.mark.parametrize("kind", KINDS)
def test_recreated_broker_is_refused_by_both_its_ids(broker, another, start, kind):
    start(kind).run(1)
    with pytest.raises(Recreated) as refused:
        start(kind, at=another).run(2)
    before, now = cluster_id_of(broker), cluster_id_of(another)
    for role in ("source", "sink"):
        assert f"the {role}'s cluster had the id {before} and has {now}" in str(refused.value)
    assert committed(another) == {}


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_that_no_ledger_knows_is_refused(broker, another, files, start, kind):
    """The checkpoint has no record of its incarnation, as if another sink had written before."""
    start(kind).run(1)
    (files.directory / checkpoint.INCARNATION).unlink()
    with pytest.raises(CheckpointMismatch, match=r"batch 2, but the ledger .* has no batch of"):
        start(kind, at=another).run(2)
    with pytest.raises(
        CheckpointMismatch, match=f"set the option newQuery to {files.query_id}:2 to"
    ):
        start(kind, at=another).take()
    assert written(another) == 0
    start(kind, at=another, newQuery="true").run(2)
    assert committed(another) == expected(2)


@pytest.mark.parametrize("kind", KINDS)
def test_topics_accepted_by_id_continue_and_are_recorded(broker, files, start, kind):
    start(kind).run(0)
    recreate(broker, "in")
    recreate(broker, "out")
    ids = f"{id_of(broker, 'in')}, {id_of(broker, 'out')}"
    with pytest.raises(Recreated, match="the source's topic in had"):
        start(kind, acceptIds=id_of(broker, "out")).run(1)
    start(kind, acceptIds=ids).run(1)
    assert entry_of(broker, files).incarnation.sink.topics["out"] == id_of(broker, "out")
    start(kind).run(2)
    assert committed(broker) == expected(1, 2)
    recreate(broker, "in")
    with pytest.raises(Recreated):
        start(kind, acceptIds=ids).run(3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_in_another_cluster(broker, another, files, start, kind):
    start(kind, sourceServers=another.bootstrap_servers).run(1)
    found = entry_of(broker, files).incarnation
    assert found.source == (cluster_id_of(another), {"in": id_of(another, "in")})
    assert found.sink.cluster_id == cluster_id_of(broker)
    recreate(broker, "in")  # A topic of the same name that no query reads.
    start(kind, sourceServers=another.bootstrap_servers).run(2)
    recreate(another, "in")
    with pytest.raises(Recreated, match="the source's topic in had"):
        start(kind, sourceServers=another.bootstrap_servers).run(3)
    assert committed(broker) == expected(0, 1, 2)


def test_a_broker_without_topic_ids_has_its_own(files, start):
    with Broker(config=PINNING, max_versions={"Metadata": 9}) as old:
        with_topics(old)
        start(SINGLE, at=old).run(0)
        start(SINGLE, at=old).run(1)
        assert committed(old) == expected(0, 1)
        assert entry_of(old, files).incarnation.sink == (cluster_id_of(old), {})


# ---------------------------------------------------------------------------- copies of checkpoints


@pytest.mark.parametrize("kind", KINDS)
def test_checkpoint_without_its_query_id_is_refused(broker, files, start, kind):
    """Spark would give it another id; the ledger knows the batches under the one that is lost."""
    start(kind).run(1)
    (files.directory / "metadata").unlink()
    with pytest.raises(CheckpointMismatch, match="batches up to 1 and no file metadata"):
        starting.take_the_sink(
            options(broker, "sink", files), files.topics, is_two_phase=kind != SINGLE
        )


@pytest.mark.parametrize("kind", KINDS)
def test_old_copy_of_the_checkpoint_is_refused_and_fences_no_driver(
    broker, files, start, tmp_path, kind
):
    running = start(kind)
    running.run(0)
    copy = files.copy_to(tmp_path / "copy")
    running.run(2)
    stale = start(kind, checkpoint=copy)
    for attempt in (stale.take, lambda: stale.run(4)):
        with pytest.raises(CheckpointMismatch, match=r"copy ends before batch 2, the last"):
            attempt()
    running.run(3)
    assert committed(broker) == expected(0, 1, 2, 3)


def test_an_old_copy_whose_batches_end_elsewhere_is_refused_as_well(
    broker, files, start, tmp_path, monkeypatch
):
    running = start(TWO_PHASE)
    running.run(0)
    copy = files.copy_to(tmp_path / "copy")
    running.run(1)
    monkeypatch.setattr("tests.spark_connector.checkpointed.PER_BATCH", 7)
    with pytest.raises(CheckpointMismatch, match="Batch 1 ends at other offsets"):
        start(TWO_PHASE, checkpoint=copy).run(1)
    running.run(2)
    assert committed(broker) == expected(0, 1, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_complete_copy_of_the_checkpoint_continues(broker, files, start, tmp_path, kind):
    """The checkpoint was moved: beside the old driver, the new one is the later one."""
    start(kind).run(1)
    start(kind, checkpoint=files.copy_to(tmp_path / "moved")).run(2)
    assert committed(broker) == expected(0, 1, 2)
    shutil.rmtree(tmp_path / "checkpoint" / "commits")
    with pytest.raises(CheckpointMismatch, match=r"checkpoint ends before batch 2, the last"):
        start(kind).run(2)


def test_a_checkpoint_that_is_further_than_the_ledger_is_refused(broker, files, start):
    start(SINGLE).run(1)
    for batch_id in (2, 3):
        files.plan(batch_id)
        files.finish(batch_id)
    with pytest.raises(CheckpointMismatch, match=r"continues with batch 4, but the last .* is 1,"):
        start(SINGLE).run(4)
    start(SINGLE, acceptLostBatch="3").run(4)
    assert committed(broker) == expected(0, 1, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_driver_whose_first_batch_another_finished_fences_no_driver(broker, start, kind):
    first = start(kind)
    first.run(0)
    late = start(kind)  # It has read the checkpoint, and is not at its first batch yet.
    first.run(2)
    if kind == DATA_SOURCE:
        kept_decider._kept, kept = [], kept_decider._kept  # They are two processes.
    with pytest.raises(Overtaken, match="has finished batch 1 since"):
        late.write(1)
    if kind == DATA_SOURCE:
        kept_decider._kept = kept
    first.run(3)
    assert committed(broker) == expected(0, 1, 2, 3)
