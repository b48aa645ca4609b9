"""Runs a workload and checks what a crash at each operation would leave."""

from random import Random
from typing import Any

from storage.simulated import Operation, SimulatedFileSystem
from tests.crash.checker import check_recovery
from tests.crash.workload import Workload

LIVES = 3
STEPS_PER_LIFE = 60


class Keep(Random):
    """A "power loss" that loses nothing: what the next process finds after a kill."""

    def choice(self, seq: Any) -> Any:
        """Answer the choice of the simulated disk that keeps most."""
        return next((kept for kept in ("everything", 1.0, 4096) if kept in seq), seq[-1])

    def random(self) -> float:
        return 0.0


class CrashRun:
    """One seed's lives; ``points`` counts the disks that were recovered and checked."""

    def __init__(self, seed: int, *, lying: bool = False) -> None:
        self.seed = seed
        self.points = 0
        self._broken: str | None = None
        self._workload = Workload(SimulatedFileSystem(lying=lying), Random(seed))

    def run(self) -> None:
        """Run all lives; raises AssertionError with seed and operation at the first violation."""
        for life in range(LIVES):
            self._workload.disk.after = self._crash_here
            self._guarded(self._workload.boot)
            for _ in range(STEPS_PER_LIFE):
                self._guarded(self._workload.step)
            self._end_life(life)

    def _guarded(self, work) -> None:
        work()
        # Raised here and not in the hook: storage would take it for an I/O error of its own.
        if self._broken is not None:
            raise AssertionError(self._broken)

    def _crash_here(self, operation: Operation) -> None:
        if self._broken is None:
            self._check(operation, Random(f"{self.seed} {operation.number} {self.points}"))
            if operation.number % 5 == 0:
                self._check(operation, Keep(self.points))

    def _check(self, operation: Operation, draw: Random) -> None:
        workload = self._workload
        self.points += 1
        image = workload.disk.crash(draw)
        details = Random(self.points)
        try:
            check_recovery(
                image,
                workload.model,
                workload.specs,
                workload.now_ms,
                details,
                again=operation.number % 4 == 0,
            )
        except Exception as error:  # noqa: BLE001  Whatever recovery raises is a finding.
            self._broken = (
                f"BARNABAS_CRASH_SEED={self.seed}: crash after operation {operation.number} of "
                f"life {workload.boots} ({operation.name} {operation.path}), "
                f"{type(draw).__name__}: {type(error).__name__}: {error}"
            )
            self._error = error

    def _end_life(self, life: int) -> None:
        """Stop in good order, be killed, or lose power; then go on with what is left."""
        workload = self._workload
        if (self.seed + life) % 3 == 0:
            self._guarded(workload.shut_down)
        draw = Keep() if (self.seed + life) % 3 == 1 else Random(f"{self.seed} {life}")
        left = workload.disk.crash(draw)
        number = check_recovery(
            left.crash(Keep()),
            workload.model,
            workload.specs,
            workload.now_ms,
            Random(life),
            again=False,
        )
        workload.model.cut(number)
        workload.disk = left
