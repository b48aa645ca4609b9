"""Runs a workload and checks what a crash at each operation would leave."""

from collections.abc import Callable
from random import Random
from typing import Any

from barnabas.broker.testing.disk.simulated import Operation, SimulatedFileSystem
from barnabas.storage.log.partition_log import PartitionLog
from tests.crash.checker import check_log, check_recovery
from tests.crash.model import Partition
from tests.crash.workload import Workload

LIVES = 3


class Keep(Random):
    """A "power loss" that loses nothing: what the next process finds after a kill."""

    def choice(self, seq: Any) -> Any:
        """Return the choice of the simulated disk that keeps most."""
        return next((kept for kept in ("everything", 1.0, 4096) if kept in seq), seq[-1])

    def random(self) -> float:
        return 0.0


class CrashRun:
    """One seed's lives; ``points`` counts the disks that were recovered and checked."""

    steps_per_life = 60

    def __init__(
        self,
        seed: int,
        *,
        lying: bool = False,
        workload: type[Workload] = Workload,
        check: Callable[[PartitionLog, Partition, Random], None] = check_log,
    ) -> None:
        self.seed = seed
        self.points = 0
        self._broken: str | None = None
        self._check_log = check
        self.workload = workload(
            SimulatedFileSystem(lying=lying, syncs_whole=seed % 2 == 0), Random(seed)
        )

    def run(self) -> None:
        """Run all lives; raises AssertionError with seed and operation at the first violation."""
        for life in range(LIVES):
            self.workload.disk.after = self._crash_here
            self._guarded(self.workload.boot)
            for _ in range(self.steps_per_life):
                self._guarded(self.workload.step)
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
        workload = self.workload
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
                check=self._check_log,
            )
        except Exception as error:  # noqa: BLE001  Any exception of recovery is a finding.
            self._broken = (
                f"BARNABAS_CRASH_SEED={self.seed}: crash after operation {operation.number} of "
                f"life {workload.boots} ({operation.name} {operation.path}), "
                f"{type(draw).__name__}: {type(error).__name__}: {error}"
            )
            self._error = error

    def _end_life(self, life: int) -> None:
        """Shut down, be killed, or lose power; then continue with the files that are left."""
        workload = self.workload
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
            check=self._check_log,
        )
        workload.model.cut(number)
        workload.disk = left
