"""``barnabas.testing.prove``: a program, or a function of the test's module, tried in a test."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Final

from barnabas.broker.cli.proving import judge, schedule
from barnabas.broker.cli.proving.identities import IdRule
from barnabas.broker.cli.proving.own_judge import OwnJudge
from barnabas.broker.cli.proving.report import lines
from barnabas.broker.cli.proving.run import Options, Proof
from barnabas.broker.cli.proving.run import prove as run_proof

_CALL: Final = (
    "import importlib, json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "getattr(importlib.import_module(sys.argv[2]), sys.argv[3])(sys.argv[4], int(sys.argv[5]))"
)
"""Program that calls a function of a module."""


class NotProved(AssertionError):
    """The program is not proved: ``str()`` is the whole report, ``proof`` has its parts."""

    def __init__(self, proof: Proof) -> None:
        self.proof = proof
        super().__init__("\n".join(lines(proof)))


def prove(
    program: Sequence[str] | Callable[[str, int], object],
    *,
    source: str,
    target: str,
    seconds: float = 10.0,
    seed: int = 0,
    instances: int = 1,
    id: str = "key",
    faults: Sequence[str] = tuple(schedule.KINDS),
    expect: str = judge.EXACTLY,
    judge_by: OwnJudge | None = None,
) -> Proof:
    """Try a program that consumes ``source`` and writes ``target``, as ``barnabas prove`` does.

    ``program`` is a command line, or a function at the top level of a module. The function is
    called in processes of its own with the bootstrap servers and the number of the instance.
    Raises NotProved, NothingTried and CommandError.
    """
    command = program if not callable(program) else _command_of(program)
    options = Options(
        list(command), source, target, seconds=seconds, seed=seed, instances=instances,
        rule=IdRule.parse(id), faults=faults, expectation=expect, own_judge=judge_by,
    )  # fmt: skip
    proof = run_proof(options)
    if not proof.verdict.is_proved:
        raise NotProved(proof)
    return proof


def _command_of(function: Callable[[str, int], object]) -> list[str]:
    """Return the command line that calls a function."""
    name = function.__qualname__
    if "." in name or "<" in name or function.__module__ == "__main__":
        raise ValueError(f"{name} is not a function at the top level of a module")
    path = json.dumps([each or "." for each in sys.path])
    return [sys.executable, "-c", _CALL, path, function.__module__, name, "{servers}", "{instance}"]
