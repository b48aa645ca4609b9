"""Faults of a program and of its broker, performed on processes."""

from __future__ import annotations

from collections.abc import Collection

from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.proving import schedule as names
from barnabas.broker.cli.proving.faults import Cure, Fault
from barnabas.broker.cli.proving.instances import Instances
from barnabas.broker.cli.proving.served import ServedBroker
from barnabas.broker.cli.proving.timeline import Timeline

_ZOMBIES_S = 2.0
"""Time for a zombie to act after the last fault, before it is killed."""


class Disturbance:
    """Performs the faults of a schedule; a fault whose object is missing does nothing."""

    def __init__(
        self, instances: Instances, broker: ServedBroker | None, timeline: Timeline
    ) -> None:
        self._instances = instances
        self._broker = broker
        self._timeline = timeline

    def begin(self, fault: Fault) -> Cure | None:
        """Perform a fault; return what heals it."""
        if fault.kind == names.BROKER:
            return self._kill_broker()
        number = int(fault.client)
        match fault.kind:
            case names.KILL:
                self._instances.kill(number)
                return lambda: self._instances.start(number)
            case names.PAUSE:
                paused = self._instances.pause(number)
                return None if paused is None else lambda: self._instances.resume(paused)
            case names.ZOMBIE:
                zombie = self._instances.replace(number)
                return None if zombie is None else lambda: self._instances.resume(zombie)
            case names.JOIN:
                self._instances.start(number)
                return lambda: self._instances.leave(number)
        raise AssertionError(f"unknown fault: {fault}")

    def _kill_broker(self) -> Cure | None:
        if self._broker is None or not self._broker.is_running:
            return None
        broker = self._broker
        broker.kill()
        self._timeline.note("", "the broker was killed (kill -9)")

        def restart() -> None:
            broker.start()
            self._timeline.note("", "the broker runs again")

        return restart

    def supervise(self, harmed: Collection[int]) -> None:
        """Start instances again that ended by themselves."""
        del harmed
        self._instances.supervise()

    def finish(self) -> None:
        """Restart a broker that ended, and let zombies act for a moment before they are killed."""
        self._instances.finish_zombies(_ZOMBIES_S)
        if self._broker is not None and not self._broker.is_running:
            raise CommandError("the broker of the run ended by itself: this is a bug of Barnabas")
