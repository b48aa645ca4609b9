"""Runs one scenario: a broker, its neighbour, the attack; measures, and judges by the limits."""

from __future__ import annotations

import asyncio
import random
import resource
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from tests.attack.neighbour import Report
from tests.attack.process import AttackedBroker, NeighbourDied, NeighbourProcess
from tests.attack.scenario import MIB, DirectoryScenario, Limits, Scenario, Sent, Target
from tests.attack.workshop import Workshop
from tests.certificates import Authority, rsa_key

SETTLE_POLL_S = 0.1
WITHOUT_ATTACK_S = 0.5
COMPLAINTS_SHOWN = 5


@dataclass
class Outcome:
    """The actions of a scenario and their cost."""

    name: str
    seed: int
    sent: Sent = field(default_factory=Sent)
    report: Report = field(default_factory=Report)
    seconds: float = 0.0
    memory_before_bytes: int = 0
    memory_peak_bytes: int = 0
    memory_after_bytes: int = 0
    descriptors_before: int = 0
    descriptors_after: int = 0
    loop_held_ms: float = 0.0
    complaints: int = 0
    violations: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """For people: the figures, then what was wrong."""
        sent = ", ".join(f"{count:,} {what}" for what, count in self.sent.items()) or "nothing"
        lines = [f"{self.name}, seed {self.seed}, {self.seconds:.1f} s: sent {sent}"]
        if self.report.acknowledged:
            lines += [f"  {each}" for each in (self._waits(), self._memory(), self._found())]
        return lines + [f"  WRONG: {each}" for each in self.violations]

    def _waits(self) -> str:
        report = self.report
        waits = {
            "Produce": report.small,
            "Produce of 540 KB": report.large,
            "Fetch": report.fetch,
            "/livez": report.livez,
        }
        said = [f"{what} {each.worst_s * 1e3:.0f} ms" for what, each in waits.items()]
        held = f"; the loop was held {self.loop_held_ms:.0f} ms at most"
        return "longest wait of the neighbour: " + ", ".join(said) + held

    def _memory(self) -> str:
        steps = (self.memory_before_bytes, self.memory_peak_bytes, self.memory_after_bytes)
        before, most, after = (f"{each / MIB:.0f}" for each in steps)
        return (
            f"memory {before} MiB before, {most} at most, {after} after; descriptors "
            f"{self.descriptors_before} before, {self.descriptors_after} after"
        )

    def _found(self) -> str:
        report = self.report
        return (
            f"{report.verified} of {report.acknowledged} acknowledged records verified; "
            f"{self.complaints} tracebacks and errors logged"
        )


def run(
    scenario: Scenario | DirectoryScenario, seed: int, duration_s: float, directory: Path
) -> Outcome:
    """Run a scenario for about ``duration_s``; everything of it lies in ``directory``."""
    outcome = Outcome(scenario.name, seed)
    started_s = time.monotonic()
    if isinstance(scenario, Scenario):
        Attack(scenario, outcome, directory).run(duration_s)
    else:
        workshop = Workshop(directory)
        outcome.sent = scenario.attack(workshop, seed, duration_s)
        outcome.violations += workshop.violations
    outcome.seconds = time.monotonic() - started_s
    return outcome


def allow_many_files() -> None:
    """Raise this process's limit of open files, and that of its brokers, to the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Attack:
    """One run of a broker under attack."""

    def __init__(self, scenario: Scenario, outcome: Outcome, directory: Path) -> None:
        self._scenario = scenario
        self._outcome = outcome
        self._directory = directory

    def run(self, duration_s: float) -> None:
        """Start, attack, look, stop, start again, look again."""
        allow_many_files()
        outcome = self._outcome
        attacked = AttackedBroker(self._directory / "broker", **self._scenario.settings)
        if self._scenario.tls:
            rsa_bits = self._scenario.rsa_bits
            key = rsa_key(size=rsa_bits) if rsa_bits else None
            attacked.serve_tls(Authority().issue(key=key))
        with attacked as broker:
            try:
                with NeighbourProcess(broker) as neighbour:
                    self._attack(broker, duration_s)
                    outcome.report = neighbour.report()
                    self._judge_neighbour(outcome.report)
                    self._stop(broker)
                    broker.restart()
                    self._judge_records(neighbour.report(), "after a restart")
                    self._stop(broker)
            except NeighbourDied as error:
                outcome.violations.append(str(error))
            self._judge_log(broker)

    def _attack(self, broker: AttackedBroker, duration_s: float) -> None:
        outcome = self._outcome
        time.sleep(WITHOUT_ATTACK_S)
        outcome.memory_before_bytes = broker.memory()["resident_bytes"]
        outcome.descriptors_before = broker.descriptors()
        begun_s = time.monotonic()
        target = Target(broker, random.Random(outcome.seed))
        try:
            outcome.sent = asyncio.run(_attack(self._scenario, target, outcome.seed, duration_s))
        except OSError:
            # Connections that must work did not: the rest says why.
            outcome.violations.append(f"the attack met {traceback.format_exc()}")
        outcome.violations += target.violations
        if not broker.is_running:
            outcome.violations.append("the broker is gone")
            return
        self._settle(broker)
        outcome.loop_held_ms = broker.loop_held_ms(begun_s)
        self._judge_what_is_left(self._scenario.limits)

    def _settle(self, broker: AttackedBroker) -> None:
        """Wait until the broker has what it had before, or for as long as that may take."""
        outcome, limits = self._outcome, self._scenario.limits
        until_s = time.monotonic() + limits.settle_s
        while True:
            memory = broker.memory()
            outcome.memory_after_bytes = memory["resident_bytes"]
            outcome.memory_peak_bytes = memory["peak_bytes"]
            outcome.descriptors_after = broker.descriptors()
            is_settled = (
                self._grown_bytes <= limits.left_bytes
                and self._descriptors_left <= limits.descriptors_left
            )
            if is_settled or time.monotonic() > until_s:
                return
            time.sleep(SETTLE_POLL_S)

    @property
    def _grown_bytes(self) -> int:
        return self._outcome.memory_after_bytes - self._outcome.memory_before_bytes

    @property
    def _descriptors_left(self) -> int:
        return self._outcome.descriptors_after - self._outcome.descriptors_before

    def _judge_what_is_left(self, limits: Limits) -> None:
        outcome = self._outcome
        peak_bytes = outcome.memory_peak_bytes - outcome.memory_before_bytes
        if peak_bytes > limits.peak_bytes:
            most = limits.peak_bytes / MIB
            outcome.violations.append(f"memory rose by {peak_bytes / MIB:.0f} MiB of {most:.0f}")
        if self._grown_bytes > limits.left_bytes:
            most = limits.left_bytes / MIB
            outcome.violations.append(f"{self._grown_bytes / MIB:.0f} MiB of {most:.0f} stay")
        if outcome.loop_held_ms > limits.loop_held_ms:
            outcome.violations.append(f"the loop was held {outcome.loop_held_ms:.0f} ms")
        if self._descriptors_left > limits.descriptors_left:
            outcome.violations.append(f"{self._descriptors_left} descriptors stay open")

    def _judge_neighbour(self, report: Report) -> None:
        limits = self._scenario.limits
        waits = {"Produce": report.small, "Produce of 540 KB": report.large, "Fetch": report.fetch}
        for what, latencies in waits.items():
            if latencies.worst_s > limits.neighbour_s:
                self._outcome.violations.append(
                    f"a {what} of the neighbour took {latencies.worst_s:.1f} s"
                )
        if report.livez.worst_s > limits.livez_s:
            self._outcome.violations.append(f"/livez took {report.livez.worst_s:.1f} s")
        told = [f"{text} ({count} times)" for text, count in report.problems.items()]
        self._outcome.violations += told
        self._judge_records(report, "after the attack")

    def _judge_records(self, report: Report, when: str) -> None:
        if not report.verified == report.acknowledged > 0:
            self._outcome.violations.append(
                f"{when} {report.verified} of {report.acknowledged} acknowledged records are there"
            )

    def _stop(self, broker: AttackedBroker) -> None:
        code = broker.terminate()
        if code:
            self._outcome.violations.append(f"the broker exited {code}")

    def _judge_log(self, broker: AttackedBroker) -> None:
        complaints = broker.complaints()
        self._outcome.complaints = len(complaints)
        self._outcome.violations += [f"logged: {each}" for each in complaints[:COMPLAINTS_SHOWN]]


async def _attack(scenario: Scenario, target: Target, seed: int, duration_s: float) -> Sent:
    return await scenario.attack(target, seed, duration_s)
