"""`barnabas cluster move` and `drain`: other brokers lead what they are asked to."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.leader_moves import Placed, away_from
from barnabas.protocol.messages.describe_log_dirs import DESCRIBE_LOG_DIRS
from tests.broker.cli.inline import Shell
from tests.broker.scripted_moves import OneOfThree
from tests.broker.several import LISTENER, ScriptedView, node
from tests.seeds import SEED


class Meeting(OneOfThree):
    """Wishes are met at once, but for those that a test holds back."""

    def _new_server(self, view=None, peers=None, durable_logs=None):
        server = super()._new_server(view, peers, durable_logs)
        self.held: set[int] = set()
        self.elsewhere: dict[int, int] = {}
        """Who comes to lead partitions instead of whom was wished for."""
        self.moves.want = self._meeting(self.moves.want)
        self.moves.pin = self._meeting(self.moves.pin)
        return server

    def _meeting(self, made):
        async def wish(wishes):
            await made(wishes)
            for partition_id, node_id in [*self.moves.wishes.items()]:
                if partition_id not in self.held:
                    self.view.led_by(partition_id, self.elsewhere.get(partition_id, node_id))
                    del self.moves.wishes[partition_id]

        return wish


@pytest.fixture
def cluster():
    """Partitions 1 to 4 of t are led by 1, 1, 2 and 1; broker 3 leads nothing."""
    nodes = [node(each, (LISTENER, "127.0.0.1", 9)) for each in (1, 2, 3)]
    with Meeting(ScriptedView(1, nodes, {3: 2}), {"t": 4}) as running:
        yield running


@pytest.fixture
def shell(cluster, monkeypatch):
    host, port = cluster.address
    return Shell(monkeypatch, f"{host}:{port}")


def leaders(cluster):
    ids = [each.partition_id for each in cluster.server.catalogue.topic("t").partitions]
    return [cluster.view.leader_of(each).node_id for each in ids]


def cordoned(shell):
    described = shell("cluster", "describe", "--format", "json").json["brokers"]
    return {each["id"]: each["cordoned"] for each in described}


def test_a_topic_is_moved(shell, cluster):
    moved = shell("cluster", "move", "t", "--to", 3, "--format", "json").json
    assert moved == [
        {"partition": f"t-{at}", "changed": True, "from": before, "to": 3}
        for at, before in enumerate([1, 1, 2, 1])
    ]
    assert leaders(cluster) == [3, 3, 3, 3]
    assert shell("cluster", "move", "t:0", "--to", 3).lines == ["t-0 is led by broker 3 already"]


def test_what_is_moved_is_pinned_until_it_is_released(shell, cluster):
    def pins():
        found = shell("cluster", "describe", "--format", "json").json["pins"]
        return [tuple(each.values()) for each in found]

    assert pins() == []
    shell("cluster", "move", "t:0,2", "--to", 1)
    assert pins() == [("t-0", 1, 1), ("t-2", 1, 1)], "be it led there already"
    shell("cluster", "move", "t:3", "--to", 3, "--dry-run")
    assert shell("cluster", "drain", 1).exit_code == 0
    assert leaders(cluster) == [2, 3, 2, 3]
    assert pins() == [("t-0", 1, 2), ("t-2", 1, 2)]
    assert shell("cluster", "describe").lines[-4:] == [
        "",
        "PARTITION PINNED TO LEADER",
        "t-0 1 2",
        "t-2 1 2",
    ]
    would = shell("cluster", "release", "t:0,1", "--dry-run").lines
    assert would == ["t-0 would be released", "t-1 is not pinned"]
    assert len(pins()) == 2
    assert shell("cluster", "release", "t:0,1").lines == ["t-0 released", "t-1 is not pinned"]
    assert pins() == [("t-2", 1, 2)]
    released = shell("cluster", "release", "t", "--format", "json").json
    assert [each["changed"] for each in released] == [False, False, True, False]
    assert pins() == []
    assert leaders(cluster) == [2, 3, 2, 3], "all of it stays where it is"


def test_nothing_is_moved_to_another_broker_that_is_drained(shell, cluster, monkeypatch):
    asked = {2: True, 3: False}
    monkeypatch.setattr("barnabas.broker.cli.cluster._cordoned", lambda _cluster: asked)
    assert shell("cluster", "drain", 1).exit_code == 0
    assert leaders(cluster) == [3, 3, 2, 3]
    asked[3] = True
    cluster.view.led_by(1, 1)
    assert shell("cluster", "drain", 1).exit_code == 0
    assert leaders(cluster)[0] == 2, "where all are, one of them"


def test_some_partitions_are_moved(shell, cluster):
    assert shell("cluster", "move", "t:0,2", "--to", 1).lines == [
        "t-0 is led by broker 1 already",
        "t-2 moved",
    ]
    assert leaders(cluster) == [1, 1, 1, 1]


def test_a_topic_may_be_named_again(shell):
    def moved(*names):
        return shell("cluster", "move", *names, "--to", 3, "--dry-run").lines

    assert moved("t:0", "t:2") == ["t-0 would be moved", "t-2 would be moved"]
    assert moved("t:0", "t") == moved("t", "t:0") == [f"t-{at} would be moved" for at in range(4)]
    assert shell("cluster", "release", "t:7", "t:0").error == "there is no partition t-7"
    unclear = shell("cluster", "release", "t:").stderr
    assert unclear.startswith("barnabas: argument TOPIC: t: is not TOPIC or TOPIC:N,N")


def test_a_broker_is_drained(shell, cluster):
    would = shell("cluster", "drain", 1, "--dry-run").lines
    assert would == ["t-0 would be moved", "t-1 would be moved", "t-3 would be moved"]
    assert leaders(cluster) == [1, 1, 2, 1]
    assert shell("cluster", "drain", 1).lines == ["t-0 moved", "t-1 moved", "t-3 moved"]
    assert leaders(cluster) == [3, 2, 2, 3]
    assert shell("cluster", "drain", 1).lines == []
    assert cordoned(shell) == {1: True, 2: None, 3: None}, "the others are not there to be asked"
    assert "yes" in shell("cluster", "describe").lines[-3].split()
    configs = ("cluster", "configs", "cordoned.log.dirs", "--broker", 1)
    assert shell(*configs).lines[1] == "cordoned.log.dirs * broker"
    assert shell("cluster", "drain", 1, "--undo", "--dry-run").lines == [
        "broker 1 could lead partitions again"
    ]
    assert shell("cluster", "drain", 1, "--undo").lines == ["broker 1 can lead partitions again"]
    assert shell(*configs).lines[1] == "cordoned.log.dirs default"
    assert cordoned(shell)[1] is False


def test_where_a_partition_is_in_the_end_is_told(shell, cluster):
    cluster.elsewhere = {1: 2}
    drained = shell("cluster", "drain", 1, "--format", "json").json
    assert [(each["partition"], each["to"]) for each in drained] == [
        ("t-0", 2),
        ("t-1", 2),
        ("t-3", 3),
    ], "t-0 was asked to go to broker 3"
    assert leaders(cluster) == [2, 2, 2, 3]


def test_a_broker_that_cannot_say_whether_it_is_cordoned_is_not_called_free(shell, cluster):
    def is_shown():
        return shell("cluster", "describe").lines[-3].split()[-1]

    assert is_shown() == "no"
    assert shell("cluster", "describe").lines[-1].split()[-1] == "unknown", "it is not there"
    cluster.server.routes.get(DESCRIBE_LOG_DIRS.key).max_version = 4
    assert cordoned(shell) == {1: None, 2: None, 3: None}
    assert is_shown() == "unknown"


def test_what_is_on_its_way_is_shown_and_what_is_late_is_told(shell, cluster):
    cluster.held = {2}
    late = shell("cluster", "move", "t", "--to", 3, "--timeout", "0.5")
    assert late.exit_code == 1
    assert late.stdout.splitlines() == ["t-0 moved", "t-2 moved", "t-3 moved"]
    assert late.stderr == "barnabas: t-1: not led by broker 3 yet\n"
    described = shell("cluster", "describe", "--format", "json").json["brokers"]
    found = {each["id"]: (each["leads"], each["coming"]) for each in described}
    assert found == {1: (1, 0), 2: (0, 0), 3: (3, 1)}


def test_mistakes(shell):
    assert shell("cluster", "move", "t", "--to", 9).error == "there is no broker 9"
    assert shell("cluster", "drain", 9).error == "there is no broker 9"
    assert shell("cluster", "move", "t:7", "--to", 2).error == "there is no partition t-7"
    assert "UNKNOWN_TOPIC_OR_PARTITION" in shell("cluster", "move", "nope", "--to", 2).error
    assert shell("cluster", "move", "t").exit_code == 2
    assert shell("cluster", "release").exit_code == 2
    assert shell("cluster", "release", "t:7").error == "there is no partition t-7"


class TestAwayFrom:
    def test_nobody_else(self):
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
