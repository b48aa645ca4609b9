"""Replays: the target gets all records or none, however the job ends."""

from __future__ import annotations

import json

import pytest

from barnabas.broker.console.actions import wire
from barnabas.broker.console.jobs import replay
from barnabas.broker.console.jobs.registry import ENDED_KEPT, RUNNING_MOST, Job, Jobs
from barnabas.broker.console.records import examining
from barnabas.broker.security.quotas.quota_limits import CLIENT_ID, PRODUCER_BYTES, entity
from barnabas.protocol import compression as codecs
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.end_txn import END_TXN
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.partitioning import partition_of
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP, fetch
from tests.broker.console.test_actions import both, path, send
from tests.broker.console.test_records import write
from tests.broker.producers import Producer, commit, open_transaction
from tests.waiting import wait_until

CONFIG = {**HTTP, "transaction.state.log.num.partitions": "2"}
JOBS = path("jobs")


@pytest.fixture(scope="module")
def broker():
    with Broker(config=CONFIG) as running:
        yield running


def start(broker, topic, target, **body):
    """Start a replay; return the name of its job."""
    status, answer = send(broker, "POST", JOBS, {"topic": topic, "target": target, **body})
    assert status == 200, answer
    return answer["changes"][0]["what"]


def job_of(broker, name):
    return fetch(broker, "jobs", name)


def ended(broker, name):
    wait_until(lambda: job_of(broker, name)["state"] != "running", "the job is over")
    return job_of(broker, name)


def replayed(broker, topic, target, **body):
    """Replay to the end, which is good; return the job."""
    job = ended(broker, start(broker, topic, target, **body))
    assert (job["state"], job["message"]) == ("committed", None)
    assert job["offsets_done"] == job["offsets_total"]
    wait_until(
        lambda: fetch(broker, "topics", target)["blocked_offsets"] == 0, "its markers are there"
    )
    return job


def seen(broker, topic, isolation="read_committed"):
    """Return partition, key, value and headers of the records that a consumer receives."""
    found = broker.records(topic, isolation).result
    return [(each.partition, each.key, each.value, list(each.headers)) for each in found]


def value_of(row):
    return row[2]


def origin(topic, partition, offset):
    return replay.ORIGIN, f"{topic}/{partition}/{offset}".encode()


def written(broker, topic, count=20, partitions=2, **config):
    """Make a topic with records of which some are compressed, some have headers, some no key."""
    broker.create_topic(topic, partitions=partitions)
    rows = [
        (
            n % partitions,
            None if n % 5 == 0 else f"k{n}",
            f"v{n}",
            [("n", str(n)), ("n", None)],
            n + 1,
        )
        for n in range(count)
    ]
    write(broker, topic, rows, **config)
    return [
        (
            partition,
            None if key is None else key.encode(),
            value.encode(),
            [("n", str(n).encode()), ("n", None)],
            n // partitions,
        )
        for n, (partition, key, value, _, _) in enumerate(rows)
    ]


# ------------------------------------------------------------------------------ what is written


def test_replay_copies_committed_records_once(broker):
    rows = written(broker, "origin", compression=codecs.GZIP)
    with Producer(broker, "aborting") as aborting:
        aborting.send("origin", "taken back")
        aborting.abort()
    broker.create_topic("copy", partitions=3)
    with open_transaction(broker, "open", "origin", 3):
        wait_until(lambda: fetch(broker, "topics", "origin")["blocked_offsets"] > 0)
        body = {"topic": "origin", "target": "copy"}
        _, looked = send(broker, "POST", f"{JOBS}?dry_run=true", body)
        assert looked["figures"]["records"] == len(rows)
        assert seen(broker, "copy", "read_uncommitted") == []
        job = replayed(broker, "origin", "copy")
    assert (job["records"], job["topic"], job["target"]) == (len(rows), "origin", "copy")
    expected = [
        (
            partition % 3 if key is None else partition_of(key, 3),
            key,
            value,
            [*headers, origin("origin", partition, offset)],
        )
        for partition, key, value, headers, offset in rows
    ]
    assert sorted(seen(broker, "copy"), key=value_of) == sorted(expected, key=value_of)
    (last,) = [each for each in fetch(broker, "jobs")["items"] if each["target"] == "copy"]
    assert last == job


def test_of_one_partition_the_order_stays(broker):
    rows = written(broker, "ordered", 3000, partitions=1)
    broker.create_topic("ordered-copy")
    replayed(broker, "ordered", "ordered-copy", partitioning="same", timestamps="kept")
    assert [each[2] for each in seen(broker, "ordered-copy")] == [each[2] for each in rows]
    found = broker.records("ordered-copy").result
    assert [each.timestamp for each in found] == list(range(1, 3001))


def test_a_topic_is_replayed_to_itself_once(broker):
    written(broker, "itself", 10)
    job = replayed(broker, "itself", "itself", partitioning="same")
    assert job["records"] == 10
    assert len(seen(broker, "itself")) == 20
    again = replayed(broker, "itself", "itself", partitioning="same", filter="value:v3")
    assert again["records"] == 2
    twice = [headers for _, _, _, headers in seen(broker, "itself") if len(headers) == 4]
    assert [name for name, _ in twice[0]] == ["n", "n", replay.ORIGIN, replay.ORIGIN]


def test_number_beyond_a_decimal_stops_no_search_and_no_replay(broker):
    broker.create_topic("numbers")
    values = ('{"id": 1e9999999999999999999}', '{"id": ' + "7" * 5_000 + "}", '{"id": 5}')
    write(broker, "numbers", [(0, None, each, [], n) for n, each in enumerate(values)])
    found = fetch(broker, "topics", "numbers", "records", filter="value.id = 5")
    assert [each["offset"] for each in found["items"]] == [2]
    found = fetch(broker, "topics", "numbers", "records", filter="value.id=1e9999999999999999999")
    assert [each["offset"] for each in found["items"]] == [0]
    broker.create_topic("numbers-again")
    assert replayed(broker, "numbers", "numbers-again", filter="value.id=5")["records"] == 1


@pytest.mark.parametrize(
    ("chosen", "values"),
    [
        ({"offsets": "0:1 1:0-2,1:2-3"}, {"v2", "v1", "v3", "v5", "v7"}),
        ({"offsets": "0:8-100"}, {"v16", "v18"}),
        ({"offsets": "0:0-9", "filter": "value:v1"}, {"v10", "v12", "v14", "v16", "v18"}),
        ({"partition": "1", "from": "last:2"}, {"v17", "v19"}),
        ({"from": "time:16"}, {"v15", "v16", "v17", "v18", "v19"}),
        ({"until_ms": 3}, {"v0", "v1"}),
        ({"filter": "nothing is like this"}, set()),
    ],
)
def test_replay_copies_the_selected_records(broker, chosen, values):
    if "chosen" not in {each["topic"] for each in fetch(broker, "topics")["items"]}:
        written(broker, "chosen")
    target = f"chosen-{abs(hash(json.dumps(chosen)))}"
    broker.create_topic(target)
    body = {"topic": "chosen", "target": target, **chosen}
    looked = both(broker, "POST", JOBS, body)
    assert looked["figures"]["records"] == len(values)
    job = ended(broker, fetch(broker, "jobs", topic=target)["items"][0]["transactional_id"])
    assert (job["state"], job["records"]) == ("committed", len(values))
    wait_until(lambda: {each[2].decode() for each in seen(broker, target)} == values)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"offsets": "5"}, "expected PARTITION:OFFSET"),
        ({"offsets": "0:5-4"}, "ends before it begins"),
        ({"offsets": "7:5"}, "partition 7 does not exist: the topic has 2"),
        ({"offsets": " ".join(["0:1"] * 1001)}, "at most 1000"),
        ({"offsets": "0:5", "from": "end"}, "goes without"),
        ({"filter": "/(/"}, "filter"),
        ({"target": "absent"}, "target: there is no such topic"),
        ({"topic": "absent"}, "topic: there is no such topic"),
        ({"target": "__consumer_offsets"}, "of the broker itself"),
        ({"partitioning": "other"}, "any of key, same"),
        ({"once": ""}, "expected a once"),
    ],
)
def test_invalid_replay_is_rejected(broker, body, words):
    if "wrong" not in {each["topic"] for each in fetch(broker, "topics")["items"]}:
        written(broker, "wrong", 2)
        commit(broker, "a-group", "wrong", 0)  # So that there is the topic of offsets.
    before = fetch(broker, "jobs")["items"]
    for query in ("?dry_run=true", ""):
        status, answer = send(
            broker, "POST", JOBS + query, {"topic": "wrong", "target": "wrong", **body}
        )
        assert status in {400, 404}, answer
        assert words in answer["message"]
    assert fetch(broker, "jobs")["items"] == before


def test_a_request_that_is_sent_twice_is_done_once(broker):
    written(broker, "twice", 5)
    broker.create_topic("twice-copy")
    names = {start(broker, "twice", "twice-copy", once="a-key") for _ in range(3)}
    assert len(names) == 1
    ended(broker, names.pop())
    name = start(broker, "twice", "twice-copy", once="a-key")
    assert ended(broker, name)["records"] == 5
    assert len(seen(broker, "twice-copy", "read_uncommitted")) == 5
    other = start(broker, "twice", "twice-copy", once="another-key")
    assert other != name
    assert ended(broker, other)["state"] == "committed"


def test_a_count_that_would_take_long_says_what_it_leaves_out(broker, monkeypatch):
    written(broker, "long", 20)
    monkeypatch.setattr("barnabas.broker.console.actions.replay.COUNTED_BYTES", 1)
    body = {"topic": "long", "target": "long"}
    _, looked = send(broker, "POST", f"{JOBS}?dry_run=true", body)
    assert looked["figures"]["offsets"] == 20
    assert looked["figures"]["records"] == looked["figures"]["offsets_not_counted"] == 10


# -------------------------------------------------------------------------------- all or nothing


def limited(broker, rate):
    """Limit jobs to ``rate`` bytes per second, or remove the limit if it is None."""
    everybody = entity({CLIENT_ID: wire.CLIENT_ID})
    server = broker.server
    broker.call(lambda: server.quotas.change([(everybody, PRODUCER_BYTES, rate)]))


@pytest.fixture
def slow(monkeypatch):
    """Jobs that go no further than their first records."""
    written = set()

    def produced(client, size_bytes):
        if size_bytes:
            written.add(client)
        return 3_600_000 if client in written else 0

    monkeypatch.setattr(wire.WireClient, "produced", produced)


def has_begun(broker, name):
    wait_until(lambda: job_of(broker, name)["records"] > 0, "something is written")


def test_a_cancel_leaves_nothing(broker, slow):
    written(broker, "cancelled", 20)
    broker.create_topic("cancelled-copy")
    name = start(broker, "cancelled", "cancelled-copy")
    has_begun(broker, name)
    assert 0 < job_of(broker, name)["records"] < 20
    assert seen(broker, "cancelled-copy") == []
    both(broker, "DELETE", path("jobs", name))
    job = ended(broker, name)
    assert (job["state"], job["message"]) == ("cancelled", None)
    wait_until(lambda: fetch(broker, "topics", "cancelled-copy")["blocked_offsets"] == 0)
    assert seen(broker, "cancelled-copy") == []
    assert seen(broker, "cancelled-copy", "read_uncommitted")
    status, answer = send(broker, "DELETE", path("jobs", name))
    assert (status, answer["error"]) == (409, "INVALID_TXN_STATE")


def test_no_more_than_two_run(broker, slow):
    written(broker, "many", 20)
    broker.create_topic("many-copy")
    names = [start(broker, "many", "many-copy") for _ in range(RUNNING_MOST)]
    for query in ("", "?dry_run=true"):
        body = {"topic": "many", "target": "many-copy"}
        status, answer = send(broker, "POST", JOBS + query, body)
        assert (status, answer["error"]) == (429, "THROTTLING_QUOTA_EXCEEDED")
    for name in names:
        both(broker, "DELETE", path("jobs", name))
        assert ended(broker, name)["state"] == "cancelled"
    assert seen(broker, "many-copy") == []


def failed(broker, topic, **body):
    """Replay what cannot be replayed; return why."""
    broker.create_topic(f"{topic}-copy", configs=body.pop("configs", {}))
    job = ended(broker, start(broker, topic, f"{topic}-copy", **body))
    assert job["state"] == "failed"
    wait_until(lambda: fetch(broker, "topics", f"{topic}-copy")["blocked_offsets"] == 0)
    assert seen(broker, f"{topic}-copy") == []
    return job["message"]


def test_a_record_that_the_target_does_not_take_ends_all_of_it(broker):
    written(broker, "large", 20)
    write(broker, "large", [(1, None, "x" * 5000, [], 1)])
    configs = {"max.message.bytes": "1000"}
    assert failed(broker, "large", configs=configs).startswith("MESSAGE_TOO_LARGE")


def test_unreadable_batch_fails_the_whole_replay(broker, monkeypatch):
    written(broker, "unread", 20)
    write(broker, "unread", [(1, None, "x" * 5000, [], 1)], compression=codecs.GZIP)
    monkeypatch.setattr(examining, "EXPANDED_BYTES_MAX", 4000)
    assert "unread-1, 10 to 11 cannot be read" in failed(broker, "unread")


def test_more_than_a_transaction_may_hold_ends_all_of_it(broker, monkeypatch):
    written(broker, "much", 20)
    monkeypatch.setattr(replay, "RECORDS_MOST", 15)
    assert failed(broker, "much", partitioning="same").startswith("POLICY_VIOLATION: more than 15")


def test_more_than_its_time_ends_all_of_it(broker, monkeypatch):
    written(broker, "late", 20)
    monkeypatch.setattr(replay, "TIME_KEPT", -1)
    assert "transaction.max.timeout.ms" in failed(broker, "late")


def test_a_write_that_fails_ends_all_of_it(broker):
    written(broker, "refused", 20)
    with broker.intercept(PRODUCE, fail=ErrorCode.KAFKA_STORAGE_ERROR):
        assert failed(broker, "refused").startswith("KAFKA_STORAGE_ERROR")


def test_a_commit_that_is_not_answered_says_so(broker):
    written(broker, "unsaid", 4)
    broker.create_topic("unsaid-copy")
    with broker.intercept(END_TXN, fail=ErrorCode.INVALID_TXN_STATE):
        job = ended(broker, start(broker, "unsaid", "unsaid-copy"))
    assert job["state"] == "failed"
    assert "says whether it was committed" in job["message"]


def test_a_target_that_is_deleted_ends_it(broker, slow):
    written(broker, "gone", 20)
    broker.create_topic("gone-copy")
    name = start(broker, "gone", "gone-copy")
    has_begun(broker, name)
    both(broker, "DELETE", path("topics", "gone-copy"), confirm="gone-copy")
    both(broker, "DELETE", path("jobs", name))
    assert ended(broker, name)["state"] in {"failed", "cancelled"}


@pytest.mark.parametrize("how", ["crash", "stop"])
def test_the_end_of_the_broker_leaves_nothing(how):
    with Broker(config=CONFIG) as broker:
        written(broker, "origin", 20)
        broker.create_topic("copy")
        limited(broker, 1.0)
        name = start(broker, "origin", "copy")
        has_begun(broker, name)
        if how == "crash":
            broker.crash()
        broker.restart()
        limited(broker, None)
        assert fetch(broker, "jobs")["items"] == []
        assert seen(broker, "copy") == []
        if how == "stop":
            wait_until(lambda: fetch(broker, "topics", "copy")["blocked_offsets"] == 0, "aborted")
        # After a crash the next job of the number fences what is left.
        assert start(broker, "origin", "copy") == name
        assert ended(broker, name)["state"] == "committed"
        wait_until(lambda: fetch(broker, "topics", "copy")["blocked_offsets"] == 0, "markers")
        assert len(seen(broker, "copy")) == 20


# -------------------------------------------------------------------------------------- the list


def test_oldest_ended_jobs_are_dropped():
    jobs = Jobs()

    def added():
        return jobs.add(lambda name: Job(name, None, "topic", "target", 0, ""))

    for _ in range(ENDED_KEPT + 5):
        added().end("committed", 1)
    assert len(list(jobs)) == ENDED_KEPT + 1
    with pytest.raises(KafkaError):
        jobs.get("barnabas-replay-1")
    running = added()
    assert next(iter(jobs)) is running
    assert jobs.next_name == f"barnabas-replay-{ENDED_KEPT + 7}"
