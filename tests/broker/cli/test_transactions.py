"""``barnabas transactions``: what it shows of transactions, and how it ends them."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.list_transactions import LIST_TRANSACTIONS
from barnabas.testing import Broker
from tests.counterparts.transaction_client import TransactionClient


@pytest.fixture(scope="module")
def shared_broker():
    """One broker for all; its tests use topics and ids of their own."""
    with Broker(config={"transaction.state.log.num.partitions": "2"}) as broker:
        broker.port = broker.address[1]
        yield broker


@pytest.fixture
def client(shared_broker):
    with TransactionClient(shared_broker, "wire-client") as connected:
        yield connected


@pytest.fixture
def topic(shared_broker, request):
    """A topic of the test's own, with its name; its ids begin with it too."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    shared_broker.create_topic(name, 2)
    return name


def described(shell, *ids):
    return shell("transactions", "describe", *ids, "--format", "json").json


def held(shell, topic):
    return shell("transactions", "list-blocking", "-t", topic, "--format", "json").json


def hang(broker, client, key, topic, partition=0):
    """Open a transaction on a partition of which the coordinator knows nothing.

    Late records without verification (KIP-890) leave a transaction like this.
    """
    client.begin(key, topic, partition)
    producer = client.producers[key]
    client.end(key)
    client.add(key, topic, partition)
    client.write(key, topic, partition)
    server = broker.server

    def forget():
        """Complete the transaction in the coordinator alone."""
        transactions = server.transactions
        machine = transactions.log.shard_of(key).machine
        before = machine.transactions[key]
        machine.transactions[key] = before._replace(
            state=type(before.state).COMPLETE_COMMIT, partitions=frozenset()
        )

    broker.call(forget)
    return producer


# ------------------------------------------------------------------------------------------- list


def test_list(shell, client, topic):
    client.begin(f"{topic}-1", topic, 0, 1)
    client.init(f"{topic}-2")
    lines = shell("transactions", "list", "--pattern", f"{topic}-[12]").lines
    assert lines[0] == "ID STATE PRODUCER EPOCH OPEN FOR PARTITIONS CLIENT HOST"
    producer_id, epoch = client.producers[f"{topic}-1"]
    assert lines[1].startswith(f"{topic}-1 Ongoing {producer_id} {epoch} ")
    assert lines[1].endswith("2 wire-client /127.0.0.1")
    producer_id, epoch = client.producers[f"{topic}-2"]
    assert lines[2:] == [f"{topic}-2 Empty {producer_id} {epoch} - 0 wire-client /127.0.0.1"]


def test_list_with_filters(shared_broker, shell, client, topic):
    client.begin(f"{topic}-open", topic, 0, timeout_ms=800_000)
    client.begin(f"{topic}-done", topic, 0)
    client.end(f"{topic}-done")

    def ids(*filters):
        found = shell("transactions", "list", "--format", "json", *filters).json
        return [each["transactional_id"] for each in found if topic in each["transactional_id"]]

    assert ids() == [f"{topic}-done", f"{topic}-open"]
    assert ids("--state", "Ongoing", "--state", "Empty") == [f"{topic}-open"]
    assert ids("--state", "CompleteCommit") == [f"{topic}-done"]
    producer_id, _ = client.producers[f"{topic}-done"]
    assert ids("--producer-id", producer_id) == [f"{topic}-done"]
    assert ids("--longer-than", "60") == []
    shared_broker.clock.advance(minutes=2)
    assert ids("--longer-than", "60") == [f"{topic}-open"]


def test_list_what_cannot_be(shell):
    ended = shell("transactions", "list", "--state", "Frozen")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr == "barnabas: Frozen: no transaction is ever in this state\n"
    error = shell("transactions", "list", "--pattern", "(").error
    assert error.endswith("(INVALID_REGULAR_EXPRESSION)")
    assert shell("transactions", "list", "--longer-than", "soon").exit_code == 2


def test_list_from_an_older_broker(shared_broker, shell, monkeypatch):
    routes = shared_broker.server.routes
    route = routes.get(LIST_TRANSACTIONS.key)
    monkeypatch.setattr(route, "max_version", 0)
    assert shell("transactions", "list").exit_code == 0
    assert shell("transactions", "list", "--longer-than", "1").error.endswith(
        "does not support filters by duration"
    )
    assert shell("transactions", "list", "--pattern", "a").error.endswith(
        "does not support filters by pattern"
    )


# --------------------------------------------------------------------------------------- describe


def test_describe(shell, client, topic):
    client.begin(topic, topic, 1, 0)
    ended = shell("transactions", "describe", topic)
    producer_id, epoch = client.producers[topic]
    assert ended.lines[:5] == [
        f"transactional id {topic}",
        "state Ongoing",
        f"producer id {producer_id}",
        f"producer epoch {epoch}",
        "timeout 1 min",
    ]
    text = "\n".join(ended.lines)
    assert "aborted in " in text
    assert "unless its producer ends it" in text
    assert "client wire-client" in text
    assert ended.lines[-3:] == ["TOPIC PARTITION", f"{topic} 0", f"{topic} 1"]
    (found,) = described(shell, topic)
    assert found["partitions"] == [
        {"topic": topic, "partition": 0},
        {"topic": topic, "partition": 1},
    ]
    assert 0 < found["remaining_ms"] <= 60_000
    assert found["age_ms"] >= 0
    client.end(topic, commit=False)
    (found,) = described(shell, topic)
    assert found["state"] == "CompleteAbort"
    assert (found["age_ms"], found["remaining_ms"], found["start_time_ms"]) == (None, None, None)


def test_describe_several(shell, client, topic):
    client.init(f"{topic}-b")
    client.init(f"{topic}-a")
    found = described(shell, f"{topic}-b", f"{topic}-a", f"{topic}-b")
    assert [each["transactional_id"] for each in found] == [f"{topic}-b", f"{topic}-a"]
    lines = shell("transactions", "describe", f"{topic}-b", f"{topic}-a").lines
    assert lines.count("") == 1
    error = shell("transactions", "describe", f"{topic}-a", "nobody").error
    assert error.startswith("nobody: ")
    assert error.endswith("(TRANSACTIONAL_ID_NOT_FOUND)")


@pytest.mark.parametrize(("commit", "state"), [(True, "PrepareCommit"), (False, "PrepareAbort")])
def test_a_decided_transaction_cannot_be_aborted(
    shared_broker, shell, client, topic, monkeypatch, commit, state
):
    client.begin(topic, topic, 0)
    markers = shared_broker.server.transactions._markers
    monkeypatch.setattr(type(markers), "begin", lambda _self, _shard, _key: None)
    client.ask(END_TXN, EndTxnRequest(topic, *client.producers[topic], commit), 3)
    (found,) = described(shell, topic)
    assert (found["state"], found["remaining_ms"]) == (state, None)
    lines = shell("transactions", "describe", topic).lines
    assert "ends when the marker is written on 1 partition" in lines
    error = shell("transactions", "abort", topic, "-y").error
    assert "it is decided" in error
    monkeypatch.undo()
    shard = shared_broker.server.transactions.log.shard_here(topic)
    shared_broker.call(lambda: markers.resume(shard, topic))


def test_no_timeout(own_broker, own_shell):
    own_broker.create_topic("t", 1)
    own_broker.port = own_broker.address[1]
    with TransactionClient(own_broker) as client:
        client.begin("t", "t", 0)
        machine = own_broker.server.transactions.log.shard_of("t").machine
        own_broker.call(
            lambda: machine.transactions.update(
                t=machine.transactions["t"]._replace(timeout_ms=2**31 - 1)
            )
        )
        lines = own_shell("transactions", "describe", "t").lines
        assert "timeout none" in lines
        assert (
            "ends when its producer or an operator decides: it has no timeout (two-phase commit)"
            in lines
        )
        (found,) = described(own_shell, "t")
        assert found["remaining_ms"] is None
        assert own_shell("transactions", "abort", "t", "--yes").lines == ["t aborted"]
        (found,) = described(own_shell, "t")
        assert (found["state"], found["timeout_ms"]) == ("Empty", 60_000)


# ---------------------------------------------------------------------------------- list-blocking


def test_list_blocking_shows_each_open_transaction(shell, client, topic):
    client.begin(f"{topic}-first", topic, 0)
    client.begin(f"{topic}-second", topic, 0, 1)
    lines = shell("transactions", "list-blocking", "-t", topic).lines
    assert lines[0] == (
        "TOPIC PARTITION STABLE END FROM PRODUCER EPOCH ID STATE OPEN FOR CLIENT HOST"
    )
    assert [line.split()[:5] for line in lines[1:]] == [
        [topic, "0", "0", "2", "0"],
        [topic, "0", "0", "2", "1"],
        [topic, "1", "0", "1", "0"],
    ]
    assert all(line.endswith(" wire-client /127.0.0.1") for line in lines[1:])
    zero, _ = held(shell, topic)
    assert (zero["partition"], zero["stable_offset"], zero["end_offset"]) == (0, 0, 2)
    owners = [each["transaction"]["transactional_id"] for each in zero["transactions"]]
    assert owners == [f"{topic}-first", f"{topic}-second"]
    assert not any(each["hanging"] for each in zero["transactions"])
    client.end(f"{topic}-first")
    zero, _ = held(shell, topic)
    assert [each["start_offset"] for each in zero["transactions"]] == [1]
    client.end(f"{topic}-second", commit=False)
    assert held(shell, topic) == []
    assert len(shell("transactions", "list-blocking", "-t", topic).lines) == 1


def test_list_blocking_without_topics_shows_all(own_broker, own_shell):
    own_broker.create_topic("a", 1)
    own_broker.create_topic("b", 1)
    own_broker.port = own_broker.address[1]
    assert own_shell("transactions", "list-blocking", "--format", "json").json == []
    with TransactionClient(own_broker) as client:
        client.begin("t", "b", 0)
        lines = own_shell("transactions", "list-blocking").lines
    assert [line.split()[:2] for line in lines[1:]] == [["b", "0"]]


def test_list_blocking_rejects_missing_partitions(shell, topic):
    error = shell("transactions", "list-blocking", "-t", f"{topic}:0,7").error
    assert error == f"{topic}-7: the topic has only 2 partitions"
    assert "UNKNOWN_TOPIC" in shell("transactions", "list-blocking", "-t", "nothing").error


def test_a_kept_transaction_does_not_hang(shared_broker, shell, client, topic):
    """The producer is fenced, and the coordinator ends the transaction with a later epoch."""
    client.begin(topic, topic, 0)
    machine = shared_broker.server.transactions.log.shard_of(topic).machine

    def fence():
        before = machine.transactions[topic]
        epoch = before.producer_epoch + 1
        machine.transactions[topic] = before._replace(producer_epoch=epoch)

    shared_broker.call(fence)
    ((holder,),) = [each["transactions"] for each in held(shell, topic)]
    assert not holder["hanging"]
    assert shell("transactions", "abort", topic, "-y").exit_code == 0
    assert held(shell, topic) == []


# ------------------------------------------------------------------------------------------ abort


def test_abort_by_id(shell, client, topic):
    client.begin(topic, topic, 0, 1)
    answer = shell("transactions", "abort", topic, "--yes", "--format", "json").json
    assert answer == {"transactional_id": topic, "changed": True}
    assert held(shell, topic) == []
    (found,) = described(shell, topic)
    assert found["state"] == "Empty"
    # Its producer is fenced.
    code = client.ask(END_TXN, EndTxnRequest(topic, *client.producers[topic], True), 3).error_code
    assert code == ErrorCode.PRODUCER_FENCED
    error = shell("transactions", "abort", topic, "--yes").error
    assert error == f"{topic}: no transaction is open, its state is Empty"


def test_abort_of_an_id_that_is_not_there_makes_none(shell, topic):
    assert shell("transactions", "abort", "nobody", "-y").error.endswith(
        "(TRANSACTIONAL_ID_NOT_FOUND)"
    )
    listed = shell("transactions", "list", "--pattern", "nobody", "--format", "json").json
    assert listed == []


def test_abort_of_what_hangs(shared_broker, shell, client, topic):
    key = f"{topic}-id"
    producer_id, epoch = hang(shared_broker, client, key, topic)
    ((holder,),) = [each["transactions"] for each in held(shell, topic)]
    assert holder["hanging"]
    assert holder["transaction"] is None
    assert (holder["producer_id"], holder["producer_epoch"]) == (producer_id, epoch)
    (line,) = shell("transactions", "list-blocking", "-t", topic).lines[1:]
    assert line.split()[7:9] == ["-", "hanging"]
    place = ("-t", topic, "-p", 0, "--start-offset")
    error = shell("transactions", "abort", *place, 1, "-y").error
    assert error == (
        f"{topic}-0: no transaction begins at offset 1; open ones begin at: "
        f"{holder['start_offset']}"
    )
    answer = shell("transactions", "abort", *place, holder["start_offset"], "-y").lines
    assert answer == [f"{topic}-0 from offset {holder['start_offset']} on aborted"]
    assert held(shell, topic) == []
    log = shared_broker.server.catalogue.partition(topic, 0).log
    assert shared_broker.call(lambda: log.last_stable_offset == log.high_watermark)


def test_transaction_known_to_its_coordinator_is_not_aborted_as_hanging(shell, client, topic):
    client.begin(topic, topic, 0, 1)
    place = ("-t", topic, "-p", 0, "--start-offset", 0)
    error = shell("transactions", "abort", *place, "--yes").error
    assert error == (
        f"{topic}-0: the transaction does not hang, it belongs to {topic} (Ongoing): abort that id"
    )
    client.end(topic)


@pytest.mark.parametrize(
    "words",
    [
        ("-y",),
        ("id", "-t", "topic", "-y"),
        ("-t", "topic", "-p", "0", "-y"),
        ("--start-offset", "1", "-y"),
        ("-t", "topic", "-p", "0", "--start-offset", "-1", "-y"),
        ("id",),
    ],
    ids=" ".join,
)
def test_abort_of_what(shell, words):
    ended = shell("transactions", "abort", *words)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("answer", "done"),
    [("y\n", True), ("Yes\n", True), ("n\n", False), ("", False)],
    ids=["y", "yes", "n", "nothing"],
)
def test_abort_requires_confirmation(shell, client, topic, answer, done):
    client.begin(topic, topic, 0)
    ended = shell("transactions", "abort", topic, stdin=answer.encode(), terminal=True)
    assert "Abort " in ended.stderr
    assert "open for" in ended.stderr
    assert "on 1 partition, and fence its producer? [y/N]" in ended.stderr
    assert ended.exit_code == (0 if done else 1)
    assert (held(shell, topic) == []) == done
