"""Schedules of faults: drawn from a seed, performed and healed in their time."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.broker.cli.proving import schedule
from barnabas.broker.cli.proving.faults import Fault, Healer, Planned
from barnabas.storage.runtime.clock import monotonic, sleep

ALL = tuple(schedule.KINDS)


def test_schedule_of_one_seed_is_drawn_again():
    first = schedule.draw(7, 30, ALL, 2)
    assert first == schedule.draw(7, 30, ALL, 2)
    assert first != schedule.draw(8, 30, ALL, 2)


def test_schedule_has_all_kinds_in_order_and_ends_with_the_time():
    drawn = schedule.draw(1, 120, ALL, 2)
    assert {each.fault.kind for each in drawn} == set(ALL)
    times = [each.at_s for each in drawn]
    assert times == sorted(times)
    assert all(each.at_s + each.fault.seconds <= 120.001 for each in drawn)


def test_schedule_has_only_chosen_kinds_and_existing_instances():
    drawn = schedule.draw(2, 60, (schedule.KILL, schedule.JOIN), 3)
    assert {each.fault.kind for each in drawn} == {schedule.KILL, schedule.JOIN}
    killed = {each.fault.client for each in drawn if each.fault.kind == schedule.KILL}
    joined = {each.fault.client for each in drawn if each.fault.kind == schedule.JOIN}
    assert killed == {"1", "2", "3"}
    assert joined == {"4"}
    assert schedule.draw(2, 60, (), 3) == []


def test_kills_happen_at_requests_most_often():
    kills = [each.fault for each in schedule.draw(3, 300, (schedule.KILL,), 2)]
    hows = {how: sum(each.how == how for each in kills) for how in ("", "before", "after")}
    assert hows["before"] > hows[""] > 0
    assert hows["after"] > hows[""]
    assert all(0 <= each.share < 1 for each in kills)


class Recorder:
    """Performer that writes down the time of each step."""

    def __init__(self) -> None:
        self.begun_s = monotonic()
        self.steps: list[tuple[float, str]] = []
        self.is_finished = False

    def note(self, text: str) -> None:
        self.steps.append((round(monotonic() - self.begun_s, 1), text))

    def begin(self, fault: Fault):
        self.note(f"begin {fault.kind}")
        return lambda: self.note(f"heal {fault.kind}")

    def supervise(self, _harmed: object) -> None:
        assert not self.is_finished or not self.steps[-1][1].startswith("begin")

    def finish(self) -> None:
        self.is_finished = True


def test_follow_performs_each_fault_at_its_time_and_heals_the_last_at_the_end():
    planned = [Planned(1.0, Fault("pause", 3.0)), Planned(2.0, Fault("kill", 60.0))]
    recorder = Recorder()
    healer = Healer(recorder, Random(1))
    healer.follow(planned, 10.0)
    assert recorder.steps == [
        (1.0, "begin pause"),
        (2.0, "begin kill"),
        (4.0, "heal pause"),
        (10.0, "heal kill"),
    ]
    assert recorder.is_finished
    assert healer.faults == {"pause": 1, "kill": 1}


class Interrupted(Recorder):
    """Performer that Ctrl-C interrupts at the second fault."""

    def begin(self, fault: Fault):
        if fault.kind == "kill":
            raise KeyboardInterrupt
        return super().begin(fault)


def test_interrupted_run_heals_nothing():
    recorder = Interrupted()
    planned = [Planned(1.0, Fault("pause", 30.0)), Planned(2.0, Fault("kill"))]
    with pytest.raises(KeyboardInterrupt):
        Healer(recorder, Random(1)).follow(planned, 10.0)
    assert recorder.steps == [(1.0, "begin pause")]
    assert not recorder.is_finished


class Slow(Recorder):
    """Performer whose faults take five seconds."""

    def begin(self, fault: Fault):
        sleep(5.0)
        return super().begin(fault)


def test_slow_faults_delay_the_others_up_to_twice_the_duration():
    recorder = Slow()
    planned = [Planned(float(number), Fault(f"f{number}")) for number in range(1, 9)]
    Healer(recorder, Random(1)).follow(planned, 10.0)
    begun = [at_s for at_s, text in recorder.steps if text.startswith("begin")]
    assert begun == [6.0, 12.0, 18.0, 24.0]
    assert recorder.is_finished


def test_follow_leaves_out_the_rest_once_it_is_enough():
    recorder = Recorder()
    planned = [Planned(1.0, Fault("kill", 30.0)), Planned(6.0, Fault("pause"))]
    until_s = monotonic() + 3.0
    healer = Healer(recorder, Random(1), is_enough=lambda: monotonic() > until_s)
    healer.follow(planned, 10.0)
    begun, healed = recorder.steps
    assert begun == (1.0, "begin kill")
    assert (3.0 <= healed[0] < 3.2, healed[1]) == (True, "heal kill")
    assert recorder.is_finished
