"""`barnabas cluster move` and `drain`: other brokers become leaders as requested."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.leader_moves import Placed, away_from
from barnabas.protocol.messages.describe_log_dirs import DESCRIBE_LOG_DIRS
from barnabas.protocol.messages.produce import PRODUCE
from tests.broker.cli.inline import Shell
from tests.broker.data_plane import Named, Wire, batch, produce_request
from tests.broker.moves import INTERNAL_PARTITIONS, led_cluster, log_of
from tests.seeds import SEED
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]


LEADERS = {"t": [0, 0, 1, 0]}


@pytest.fixture
def cluster(world):
    """Partitions 0, 1 and 3 of t are led by broker 0, and 2 by broker 1; broker 2 leads nothing."""
    with led_cluster(LEADERS) as running:
        yield running


@pytest.fixture
def shell(cluster, monkeypatch):
    """Run a command, whose pauses take simulated time."""
    host, port = cluster.brokers[0].address
    return Shell(monkeypatch, f"{host}:{port}")


def leaders(cluster):
    return [cluster.leader("t", index) for index in range(4)]


def cordoned(shell):
    described = shell("cluster", "describe", "--format", "json").json["brokers"]
    return {each["id"]: each["cordoned"] for each in described}


def test_a_topic_is_moved(shell, cluster):
    moved = shell("cluster", "move", "t", "--to", 2, "--format", "json").json
    assert moved == [
        {"partition": f"t-{at}", "changed": True, "from": before, "to": 2}
        for at, before in enumerate(LEADERS["t"])
    ]
    assert leaders(cluster) == [2, 2, 2, 2]
    assert shell("cluster", "move", "t:0", "--to", 2).lines == ["t-0 is led by broker 2 already"]


def test_moved_partition_stays_pinned_until_released(world, shell, cluster):
    def pins():
        found = shell("cluster", "describe", "--format", "json").json["pins"]
        return [tuple(each.values()) for each in found]

    assert pins() == []
    shell("cluster", "move", "t:0,2", "--to", 0)
    assert pins() == [("t-0", 0, 0), ("t-2", 0, 0)], "be it led there already"
    shell("cluster", "move", "t:3", "--to", 2, "--dry-run")
    assert shell("cluster", "drain", 0).exit_code == 0
    world.sleep(5)  # Partitions may move once more, to where the command wished them.
    before = leaders(cluster)
    assert 0 not in before
    assert pins() == [("t-0", 0, before[0]), ("t-2", 0, before[2])]
    assert shell("cluster", "describe").lines[-4:] == [
        "",
        "PARTITION PINNED TO LEADER",
        f"t-0 0 {before[0]}",
        f"t-2 0 {before[2]}",
    ]
    would = shell("cluster", "release", "t:0,1", "--dry-run").lines
    assert would == ["t-0 would be released", "t-1 is not pinned"]
    assert len(pins()) == 2
    assert shell("cluster", "release", "t:0,1").lines == ["t-0 released", "t-1 is not pinned"]
    assert pins() == [("t-2", 0, before[2])]
    released = shell("cluster", "release", "t", "--format", "json").json
    assert [each["changed"] for each in released] == [False, False, True, False]
    assert pins() == []
    assert leaders(cluster) == before, "all of it stays where it is"


def test_nothing_is_moved_to_another_broker_that_is_drained(shell, cluster):
    assert shell("cluster", "drain", 1).exit_code == 0
    assert shell("cluster", "drain", 0).exit_code == 0
    assert leaders(cluster) == [2, 2, 2, 2]


def test_some_partitions_are_moved(shell, cluster):
    assert shell("cluster", "move", "t:0,2", "--to", 0).lines == [
        "t-0 is led by broker 0 already",
        "t-2 moved",
    ]
    assert leaders(cluster) == [0, 0, 0, 0]


def test_a_topic_may_be_named_again(shell):
    def moved(*names):
        return shell("cluster", "move", *names, "--to", 2, "--dry-run").lines

    assert moved("t:0", "t:2") == ["t-0 would be moved", "t-2 would be moved"]
    assert moved("t:0", "t") == moved("t", "t:0") == [f"t-{at} would be moved" for at in range(4)]
    assert shell("cluster", "release", "t:7", "t:0").error == "partition t-7 does not exist"
    unclear = shell("cluster", "release", "t:").stderr
    assert unclear.startswith("barnabas: argument TOPIC: t: is not TOPIC or TOPIC:N,N")


def test_a_broker_is_drained(shell, cluster):
    def of_t(lines):
        return [each for each in lines if each.startswith("t-")]

    would = shell("cluster", "drain", 0, "--dry-run").lines
    assert of_t(would) == ["t-0 would be moved", "t-1 would be moved", "t-3 would be moved"]
    assert leaders(cluster) == LEADERS["t"]
    drained = shell("cluster", "drain", 0).lines
    assert of_t(drained) == ["t-0 moved", "t-1 moved", "t-3 moved"]
    assert len(drained) == 3 + 2 * INTERNAL_PARTITIONS
    after = leaders(cluster)
    assert after[2] == 1
    assert {*after} == {1, 2}
    assert shell("cluster", "drain", 0).lines == []
    assert cordoned(shell) == {0: True, 1: False, 2: False}
    assert "yes" in shell("cluster", "describe").lines[-3].split()
    configs = ("cluster", "configs", "cordoned.log.dirs", "--broker", 0)
    assert shell(*configs).lines[1] == "cordoned.log.dirs * broker"
    assert shell("cluster", "drain", 0, "--undo", "--dry-run").lines == [
        "broker 0 could lead partitions again"
    ]
    assert shell("cluster", "drain", 0, "--undo").lines == ["broker 0 can lead partitions again"]
    assert shell(*configs).lines[1] == "cordoned.log.dirs default"
    assert cordoned(shell)[0] is False


def test_move_reports_the_actual_leader(shell, cluster, monkeypatch):
    """The partition moves to another broker than the requested one."""
    index = cluster._store.index
    (t_0, *_) = cluster._partition_ids("t")
    want = index.want

    def elsewhere(nodes, **more):
        want({at: 3 - to if at == t_0 and to else to for at, to in nodes.items()}, **more)

    monkeypatch.setattr(index, "want", elsewhere)
    drained = shell("cluster", "drain", 0, "--dry-run", "--format", "json").json
    (asked,) = (each["to"] for each in drained if each["partition"] == "t-0")
    drained = shell("cluster", "drain", 0, "--format", "json").json
    (found,) = (each["to"] for each in drained if each["partition"] == "t-0")
    assert found == 3 - asked == leaders(cluster)[0]


def test_a_broker_that_cannot_say_whether_it_is_cordoned_is_not_called_free(shell, cluster):
    def is_shown():
        return shell("cluster", "describe").lines[-3].split()[-1]

    assert is_shown() == "no"
    cluster.brokers[0].server.routes.get(DESCRIBE_LOG_DIRS.key).max_version = 4
    assert cordoned(shell)[0] is None
    assert is_shown() == "unknown"


def test_pending_and_late_moves_are_reported(shell, cluster):
    first = cluster.brokers[0]
    cluster.hold_commits(0)
    with Wire(first.address) as wire:
        wire.send(PRODUCE, produce_request(9, Named("t"), (1, batch())), 9)
        wait_until(lambda: log_of(first, "t", 1).next_offset == 1)
        late = shell("cluster", "move", "t", "--to", 2, "--timeout", "8")
        assert late.exit_code == 1
        assert late.stdout.splitlines() == ["t-0 moved", "t-2 moved", "t-3 moved"]
        assert late.stderr == "barnabas: t-1: not led by broker 2 yet\n"
        described = shell("cluster", "describe", "--format", "json").json["brokers"]
        found = {each["id"]: (each["leads"], each["coming"]) for each in described}
        assert found == {0: (1 + 2 * INTERNAL_PARTITIONS, 0), 1: (0, 0), 2: (3, 1)}
        cluster.release_commits(0)


def test_mistakes(shell):
    assert (
        shell("cluster", "move", "t", "--to", 9).error
        == "broker 9 is none of the brokers [0, 1, 2]"
    )
    assert shell("cluster", "drain", 9).error == "broker 9 is none of the brokers [0, 1, 2]"
    assert shell("cluster", "move", "t:7", "--to", 2).error == "partition t-7 does not exist"
    assert "UNKNOWN_TOPIC_OR_PARTITION" in shell("cluster", "move", "nope", "--to", 2).error
    assert shell("cluster", "move", "t").exit_code == 2
    assert shell("cluster", "release").exit_code == 2
    assert shell("cluster", "release", "t:7").error == "partition t-7 does not exist"


class TestAwayFrom:
    def test_drain_without_another_broker_is_rejected(self):
        with pytest.raises(CommandError):
            away_from(1, [Placed("t", 0, 1, [1])], [1])

    def test_a_replica_comes_before_a_broker_that_has_none(self):
        (move,) = away_from(1, [Placed("t", 0, 1, [1, 3])], [1, 2, 3])
        assert (move.to, move.partition.led_by(move.to)) == (3, [3, 1])

    def test_at_random(self):
        """All that a broker leads goes elsewhere, evenly; nothing else does."""
        random = Random(SEED)
        for _ in range(200):
            nodes = random.sample(range(50), random.randint(2, 6))
            partitions = [
                Placed("t", number, leader, [leader])
                for number, leader in enumerate(
                    random.choices([-1, *nodes], k=random.randint(0, 40))
                )
            ]
            gone = random.choice(nodes)
            before = Counter(each.leader_id for each in partitions)
            moves = away_from(gone, partitions, nodes)
            assert [each.partition for each in moves] == [
                p for p in partitions if p.leader_id == gone
            ]
            got = Counter(each.to for each in moves)
            after = {each: before[each] + got[each] for each in nodes if each != gone}
            lowest = min(after.values())
            assert all(after[each] - lowest <= 1 for each in got)
