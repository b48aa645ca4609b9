"""The runner of the transaction coordinator: its owner's effects, and commands that follow."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.broker.coordination.runner import Following, Runner
from barnabas.coordinator.decision import Decision, Now, Schedule, Timer
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.broker.toy_coordinator import Coordinator, Decide, Do, Expired, Toy, fail, get, put, say

TIMER = Timer("k", "t")


class Appending(Coordinator):
    """Notes what the runner shows its owner."""

    def make_runner(self) -> Any:
        self.effects: list[object] = []
        self.seen: list[tuple[dict[str, int], object]] = []
        return Runner(self.log, self.host, Expired, on_appended=self._note, take_effect=self._take)

    def _note(self, toy: Toy, decision: Decision, _command: object) -> None:
        self.seen.append((dict(toy.numbers), decision.response))

    def _take(self, _shard: object, effect: object) -> Following | None:
        self.effects.append(effect)
        return effect if isinstance(effect, Following) else None

    def run(self, decide: Decide, key: str = "k") -> object:
        (shard,) = self.log.shards
        return self.runner.run(shard, key, Do(decide)).response

    def code_of(self, decide: Decide) -> ErrorCode:
        with pytest.raises(KafkaError) as caught:
            self.run(decide)
        return caught.value.code

    def now_ms(self) -> int:
        return int(self.clock.monotonic() * 1000)


@pytest.fixture
def opened() -> Appending:
    coordinator = Appending()
    coordinator.log.open()
    return coordinator


def test_run_returns_before_the_disk_has_anything(opened):
    assert opened.run(put("k", 1, changes=("changed",))) == "done"
    assert opened.run(get("k")) == 1
    (shard,) = opened.log.shards
    assert shard.log.high_watermark == 0, "nothing is on the disk"
    opened.sync()
    assert opened.restarted().toy.numbers == {"k": 1}


def test_its_owner_is_shown_the_machine_before_and_gets_the_effects_behind_it(opened):
    opened.run(put("k", 1, "first"))
    opened.run(put("k", 2, "second", effects=("mine", Schedule(TIMER, 1 << 40))))
    opened.run(say(response="nothing", effects=("more",)))
    assert opened.seen == [({}, "first"), ({"k": 1}, "second")]
    assert opened.effects == ["mine", "more"]


def test_command_that_follows_is_decided_right_behind_its_decision(opened):
    codes: list[ErrorCode] = []
    add_one = Do(lambda toy, now: put("k", toy.numbers["k"] + 1)(toy, now))
    follows = Following("k", add_one, codes.append)
    assert opened.run(put("k", 1, "first", effects=(follows,))) == "first"
    assert (opened.toy.numbers, opened.toy.offsets, codes) == ({"k": 2}, [0, 1], [ErrorCode.NONE])


def test_command_that_follows_and_is_refused_leaves_its_decision_alone(opened):
    codes: list[ErrorCode] = []

    def fill_the_disk(toy: Toy, now: Now) -> Decision:
        opened.administration.logs.exhausted = True
        return put("k", 2)(toy, now)

    follows = Following("k", Do(fill_the_disk), codes.append)
    assert opened.run(put("k", 1, "first", effects=(follows,))) == "first"
    assert (opened.toy.numbers, opened.fatal) == ({"k": 1}, [])
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_rejected_command_leaves_no_trace(opened, caplog):
    opened.administration.logs.exhausted = True
    more = {"changes": ("changed",), "effects": ("effect",)}
    assert opened.code_of(put("k", 1, **more)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    opened.administration.logs.exhausted = False
    assert opened.code_of(fail) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "command failed" in caplog.text
    assert (opened.toy.numbers, opened.toy.changes, opened.effects) == ({}, [], [])
    assert (opened.seen, opened.fatal) == ([], [])
    assert opened.run(put("k", 1)) == "done"


def test_timer_does_not_fire_without_the_topic_or_the_broker(opened):
    set_it = say(response="set", effects=(Schedule(TIMER, opened.now_ms() + 500),))
    opened.run(set_it)
    opened.delete_topic()
    assert opened.log.refusal("k") == ErrorCode.NOT_COORDINATOR
    opened.clock.advance(hours=1)
    opened.create_topic(1)
    assert opened.log.refusal("k") == ErrorCode.NONE
    opened.run(set_it)
    opened.runner.close()
    opened.run(set_it)
    opened.clock.advance(hours=1)
    assert (opened.toy.numbers, opened.flushed) == ({}, 0)


def test_lost_shard_decides_no_command_and_its_timers_do_not_fire(opened):
    opened.run(say(response="set", effects=(Schedule(TIMER, opened.now_ms() + 500),)))
    assert opened.run(put("k", 1)) == "done"
    (shard,) = opened.log.shards
    opened.log.lose(0)
    assert len(opened.runner._timers) == 0
    with pytest.raises(KafkaError) as caught:
        opened.runner.run(shard, "k", Do(put("k", 2)))
    assert caught.value.code == ErrorCode.NOT_COORDINATOR
    opened.sync()
    opened.log.gain(0)
    asyncio.run(opened.spawned.pop())
    opened.clock.advance(hours=1)
    assert opened.run(get("k")) == 1
