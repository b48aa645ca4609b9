"""Faults of a program and of its broker, performed on processes."""

from __future__ import annotations

import signal
from collections.abc import Collection
from typing import NamedTuple

from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.proving import schedule as names
from barnabas.broker.cli.proving.calls import PRODUCE
from barnabas.broker.cli.proving.faults import Cure, Fault, Planned
from barnabas.broker.cli.proving.instances import Instances, Process
from barnabas.broker.cli.proving.passing import Passage
from barnabas.broker.cli.proving.proxy import Act
from barnabas.broker.cli.proving.served import ServedBroker
from barnabas.broker.cli.proving.timeline import Timeline
from barnabas.broker.cli.proving.wiretap import Moment, Wiretap
from barnabas.storage.runtime.clock import monotonic, sleep

_INTERVAL_S = 0.005
_AT_WORK = frozenset({names.ZOMBIE, names.SLOW, names.CUT_BEFORE, names.CUT_AFTER})
"""Faults that need an instance at work, as all those at a request do."""
_WORKS_S = 6.0
"""Maximum time to wait until a process that has just started reads inputs."""
_TAKEOVER_S = 12.0
"""Maximum time to wait until another process has the partitions of a zombie."""
_ZOMBIES_S = 2.0
"""Time for a zombie to act after the last fault, before it is killed."""


class _Sleeper(NamedTuple):
    """A zombie that may wake up."""

    zombie: Process
    paused_s: float
    until_s: float


class Disturbance:
    """Performs the faults of a schedule; a fault whose object is missing does nothing."""

    def __init__(
        self,
        instances: Instances,
        timeline: Timeline,
        broker: ServedBroker | None,
        wiretap: Wiretap,
        passage: Passage,
    ) -> None:
        """``broker`` is the one that the command has started, or ``None`` with existing brokers."""
        self._instances = instances
        self._timeline = timeline
        self._broker = broker
        self._wiretap = wiretap
        self._passage = passage
        self._sleepers: list[_Sleeper] = []
        self.performed: list[Planned] = []
        """Faults that harmed something, each with its time in the timeline."""
        wiretap.on_moment = instances.signal_named

    def begin(self, fault: Fault) -> Cure | None:
        """Perform a fault; return what heals it."""
        number = int(fault.client or 0)
        if fault.how or fault.kind in _AT_WORK:
            self._wait_for_work(number)
        match fault.kind:
            case names.KILL:
                return self._kill(fault, number)
            case names.PAUSE:
                return self._pause(fault, self._instances.pause(number), fault.how)
            case names.ZOMBIE:
                if not self._can_be_succeeded(number):
                    return None
                self._wait_for_request(fault, number)
                return self._sleep(fault, self._instances.replace(number))
            case names.JOIN:
                if self._instances.running(number) is not None:
                    return None  # It has joined, and has not left yet.
                self._instances.start(number)
                self._count(fault)
                return lambda: self._instances.leave(number)
            case names.BROKER:
                return self._kill_broker(fault)
        return self._at_the_wire(fault, number)

    def _wait_for_work(self, number: int) -> None:
        """Wait until the process of an instance has read inputs, but not long."""
        until_s = monotonic() + _WORKS_S
        while monotonic() < until_s:
            process = self._instances.of(number).process
            if process is not None and self._wiretap.has_read(process.name):
                return
            self.supervise(())
            sleep(_INTERVAL_S)

    def _count(self, fault: Fault) -> None:
        """Note that a fault harmed something."""
        self.performed.append(Planned(round(self._timeline.now_s(), 3), fault))

    def _kill(self, fault: Fault, number: int) -> Cure:
        """Kill an instance at a request, or at once."""
        if fault.how:
            act = Act.CUT if fault.how == names.BEFORE else Act.SWALLOW
            api = self._wiretap.chosen(fault.share, act, signal.SIGKILL)
            reason = f"{fault.how} its {api} took effect"
            moment = Moment(api, number, act, signal.SIGKILL, reason)
            if self._wiretap.arm(moment):
                return lambda: self._end_kill(fault, number, moment)
        self._kill_now(fault, number)
        return lambda: self._instances.start(number)

    def _kill_now(self, fault: Fault, number: int) -> None:
        if self._instances.kill(number):
            self._count(fault)

    def _end_kill(self, fault: Fault, number: int, moment: Moment) -> None:
        """Kill an instance now whose request did not come."""
        if self._wiretap.disarm(moment):
            self._kill_now(fault, number)
            self._instances.start(number)
        else:
            self._count(fault)

    def _can_be_succeeded(self, number: int) -> bool:
        """Return whether an instance has read inputs, and no other zombie sleeps.

        With several of them no instance may be left that takes their partitions over in time.
        """
        process = self._instances.of(number).process
        if process is None or self._instances.has_sleeping_zombie:
            return False
        return self._wiretap.has_read(process.name)

    def _wait_for_request(self, fault: Fault, number: int) -> None:
        """Stop an instance at its next request of a kind, or at once if none comes."""
        wiretap = self._wiretap
        process = self._instances.of(number).process
        if not fault.how or process is None:
            return
        # A zombie has its offsets still to commit: those are what its successor must be safe from.
        api = PRODUCE
        if fault.kind != names.ZOMBIE:
            api = wiretap.chosen(fault.share, Act.FORWARD, signal.SIGSTOP)
        until_s = monotonic() + names.REQUEST_S
        moment = Moment(api, number, Act.FORWARD, signal.SIGSTOP, f"at its {api}", process.name)
        if wiretap.arm(moment):
            while wiretap.is_armed(moment) and monotonic() < until_s:
                sleep(_INTERVAL_S)
            wiretap.disarm(moment)

    def _pause(self, fault: Fault, paused: Process | None, manner: str) -> Cure | None:
        if paused is None:
            return None
        self._count(fault)
        if manner == names.EXPIRES:
            self._passage.expire(paused.name)
        return lambda: self._instances.resume(paused)

    def _sleep(self, fault: Fault, zombie: Process | None) -> Cure | None:
        """Return the cure of a zombie: it wakes up after another process has its partitions."""
        cure = self._pause(fault, zombie, names.EXPIRES)
        if zombie is None or cure is None:
            return cure
        paused_s = self._timeline.now_s()

        def allow() -> None:
            self._sleepers.append(_Sleeper(zombie, paused_s, monotonic() + _TAKEOVER_S))

        return allow

    def _wake(self) -> None:
        """Wake zombies whose partitions have been taken over, or that have waited long enough."""
        for each in list(self._sleepers):
            is_over = self._wiretap.has_successor(each.zombie.name, each.paused_s)
            if is_over or monotonic() > each.until_s:
                self._sleepers.remove(each)
                self._instances.resume(each.zombie)

    def _at_the_wire(self, fault: Fault, number: int) -> Cure | None:
        wiretap = self._wiretap
        match fault.kind:
            case names.LOADING:
                wiretap.load_coordinator(number)
                self._timeline.note("", f"the coordinator loads for instance {number}")
                self._count(fault)
                return wiretap.end_loading
            case names.SLOW:
                return self._slow_down(fault, number)
        act = Act.CUT if fault.kind == names.CUT_BEFORE else Act.SWALLOW
        moment = Moment(wiretap.chosen(fault.share, act), number, act)
        if not wiretap.arm(moment):
            return None

        def end() -> None:
            if not wiretap.disarm(moment):
                self._count(fault)

        return end

    def _slow_down(self, fault: Fault, number: int) -> Cure | None:
        """Pause an instance while its transaction times out."""
        self._wait_for_request(fault, number)
        paused = self._instances.pause(number)
        if paused is None:
            return None
        if self._passage.time_out(paused.name):
            self._count(fault)
        return lambda: self._instances.resume(paused)

    def _kill_broker(self, fault: Fault) -> Cure | None:
        if self._broker is None or not self._broker.is_running:
            return None
        broker = self._broker
        broker.kill()
        self._count(fault)
        self._timeline.note("", "the broker was killed (kill -9)")

        def restart() -> None:
            broker.start()
            self._timeline.note("", "the broker runs again")

        return restart

    def supervise(self, harmed: Collection[int]) -> None:
        """Start instances again that ended by themselves."""
        del harmed
        self._instances.supervise()
        self._wake()
        if self._broker is None or self._broker.is_running:
            self._passage.step()

    def finish(self) -> None:
        """Kill zombies, after a moment in which they can act; raises CommandError."""
        while self._sleepers:
            self.supervise(())
            sleep(_INTERVAL_S)
        self._instances.finish_zombies(_ZOMBIES_S)
        if self._broker is not None and not self._broker.is_running:
            raise CommandError("the broker of the run ended by itself: this is a bug of Barnabas")
