"""`python -m tests.interop.prove_seeds --seeds 20`: ten programs under ``barnabas prove``.

Five right programs must be proved, and five with a mistake each must be found, whose story names
the cause. Each run is one line of a file, so that an interrupted campaign continues where it was.
The output of a run with another result stays beside that file.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.checkout import ROOT
from tests.counterparts.apache_kafka import ApacheKafka
from tests.interop.command_line import command, environment
from tests.interop.proving import (
    AIOKAFKA,
    CONFLUENT,
    FRANZ_GO,
    JAVA,
    KAFKA_PYTHON,
    NOT_PROVED,
    PROVED,
    RIGHT,
    RUN_LIMIT_S,
    TOPICS,
    WRONG,
    Mistake,
    Program,
    Proved,
)

DIRECTORY = ROOT / "build" / "prove-seeds"
PROGRAMS: dict[str, Program | Mistake] = {each.slug: each for each in (*RIGHT, *WRONG)}
TEN = [each.slug for each in (KAFKA_PYTHON, CONFLUENT, AIOKAFKA, JAVA, FRANZ_GO, *WRONG)]
VERDICTS = {PROVED: "PROVED", NOT_PROVED: "NOT PROVED"}
FOUND_WITHIN_S = 120
INTERVAL_S = 0.1
STOPS_S = 30


@dataclass(frozen=True)
class Run:
    """One run of a program; those that are equal are done once."""

    program: str
    seed: int
    seconds: float
    broker: str


@dataclass(frozen=True)
class Result:
    """Result of a run."""

    run: Run
    verdict: str
    """Last line of the output, or the exit code of a run without a verdict."""
    causes: str
    """Causes that the story named."""
    took_s: float

    @property
    def is_wrong(self) -> bool:
        """Whether the program has a mistake."""
        return isinstance(PROGRAMS[self.run.program], Mistake)

    @property
    def is_expected(self) -> bool:
        return self.verdict == VERDICTS[NOT_PROVED if self.is_wrong else PROVED]

    @property
    def is_named(self) -> bool:
        """Whether the story names the cause of the mistake."""
        program = PROGRAMS[self.run.program]
        return isinstance(program, Mistake) and program.cause in self.causes.split()

    @property
    def is_soon(self) -> bool:
        """Whether the mistake was found in time."""
        return self.is_wrong and self.is_expected and self.took_s <= FOUND_WITHIN_S

    def line(self) -> str:
        return (
            f"{self.run.program:26} seed {self.run.seed:<4} {self.verdict:11} "
            f"{'expected' if self.is_expected else 'UNEXPECTED':10} {self.took_s:5.0f} s  "
            f"{self.causes or '-'}"
        )


def results_of(file: Path) -> list[Result]:
    """Return the results that a file has."""
    if not file.exists():
        return []
    found = [json.loads(line) for line in file.read_text().splitlines()]
    return [Result(**{**each, "run": Run(**each["run"])}) for each in found]


def table(results: Sequence[Result]) -> Iterator[str]:
    """Yield the table of a campaign: a line for each program."""
    yield _row("program", "expected", "cause named", "within 120 s", "seconds")
    for program in PROGRAMS:
        mine = [each for each in results if each.run.program == program]
        if not mine:
            continue
        of_all = [f"{sum(each.is_expected for each in mine)} of {len(mine)}", "-", "-"]
        if mine[0].is_wrong:
            of_all[1] = f"{sum(each.is_named for each in mine)} of {len(mine)}"
            of_all[2] = f"{sum(each.is_soon for each in mine)} of {len(mine)}"
        times = [each.took_s for each in mine]
        yield _row(program, *of_all, f"{min(times):.0f}-{max(times):.0f}")


def _row(program: str, expected: str, named: str, soon: str, times: str) -> str:
    return f"{program:26} {expected:>10} {named:>12} {soon:>13} {times:>10}"


def arguments_of(run: Run, directory: Path) -> list[object]:
    """Return the arguments of a run; programs with a mistake are written into the directory."""
    # Two mistakes can be made in one program, whose file has one name.
    program = PROGRAMS[run.program].words(directory / "programs" / run.program)
    return ["--seconds", run.seconds, "--seed", run.seed, *TOPICS, *program]


class Started:
    """A run whose process works."""

    def __init__(self, run: Run, directory: Path) -> None:
        self.run = run
        self.output = directory / f"{run.broker}-{run.program}-{run.seed}.txt"
        self._stack = ExitStack()
        words = arguments_of(run, directory)
        if run.broker == "kafka":
            kafka = self._stack.enter_context(ApacheKafka())
            words[:0] = ["--bootstrap-server", kafka.bootstrap_servers]
        self._begun_s = time.monotonic()
        with self.output.open("w") as output:
            self._process = subprocess.Popen(
                command("prove", *words),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(),
                cwd=directory,
                start_new_session=True,  # Ctrl-C ends it through `close`, without a result.
            )

    def result(self) -> Result | None:
        """Return the result, or ``None`` while the process works."""
        code = self._process.poll()
        took_s = time.monotonic() - self._begun_s
        if code is None and took_s < RUN_LIMIT_S:
            return None
        self.close()
        found = Proved(self._process.returncode, self.output.read_text(), took_s)
        last = found.output.rstrip().rpartition("\n")[2]
        has_verdict = last == VERDICTS.get(found.code)
        verdict = last if has_verdict else f"exit code {found.code}"
        return Result(self.run, verdict, found.pages, round(took_s, 1))

    def close(self) -> None:
        """End the process, which ends everything that it has started."""
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STOPS_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stack.close()


def perform(runs: Iterable[Run], jobs: int, directory: Path) -> Iterator[Result]:
    """Yield the results of runs, several at once, in the order of their ends."""
    waiting = iter(runs)
    working: list[Started] = []
    try:
        while True:
            while len(working) < jobs and (run := next(waiting, None)) is not None:
                working.append(Started(run, directory))
            if not working:
                return
            for each in list(working):
                if (result := each.result()) is not None:
                    working.remove(each)
                    if result.is_expected and (not result.is_wrong or result.is_named):
                        each.output.unlink()
                    yield result
            time.sleep(INTERVAL_S)
    finally:
        for each in working:
            each.close()


def main(words: Sequence[str] | None = None) -> int:
    """Run the campaign; exit 0 if all results are expected."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop.prove_seeds")
    parser.add_argument("--seeds", type=int, default=20, help="runs of each program")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--programs", default=",".join(TEN), help=", ".join(PROGRAMS))
    parser.add_argument("--jobs", type=int, default=4, help="runs at once")
    parser.add_argument("--seconds", type=float, default=60, help="seconds of faults")
    parser.add_argument("--broker", choices=("barnabas", "kafka"), default="barnabas")
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="results and outputs")
    arguments = parser.parse_args(words)
    chosen = arguments.programs.split(",")
    if unknown := set(chosen) - set(PROGRAMS):
        parser.error(f"unknown programs: {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    directory = arguments.directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "results.jsonl"
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    wanted = [
        Run(program, seed, arguments.seconds, arguments.broker)
        for seed in seeds
        for program in chosen
    ]
    done = {each.run: each for each in results_of(file)}
    runs = [each for each in wanted if each not in done]
    print(f"{len(wanted)} runs, {len(wanted) - len(runs)} of them in {file}", flush=True)
    for result in perform(runs, arguments.jobs, directory):
        with file.open("a") as results:
            results.write(json.dumps(asdict(result)) + "\n")
        done[result.run] = result
        print(result.line(), flush=True)
    results = [done[each] for each in wanted]
    for line in table(results):
        print(line)
    return 0 if all(each.is_expected for each in results) else 1


if __name__ == "__main__":
    sys.exit(main())
