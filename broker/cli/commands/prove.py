"""``barnabas prove``: try a program for exactly once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from barnabas.broker.admin.exchange import Rejected
from barnabas.broker.cli.arguments import add_bootstrap, add_flag, addresses, seconds, whole_number
from barnabas.broker.cli.errors import FAILED, OK, USAGE, CommandError, report
from barnabas.broker.cli.interruption import Interruption
from barnabas.broker.cli.output import print_json
from barnabas.broker.cli.printing import print_text
from barnabas.broker.cli.proving import judge, schedule
from barnabas.broker.cli.proving.identities import IdRule
from barnabas.broker.cli.proving.minimising import minimised
from barnabas.broker.cli.proving.own_judge import declared, judge_file
from barnabas.broker.cli.proving.report import (
    Failure,
    as_json,
    as_junit,
    failure_as_json,
    failure_as_junit,
    lines,
)
from barnabas.broker.cli.proving.run import NothingTried, Options, Proof, prove
from barnabas.broker.client.errors import Unreachable
from barnabas.storage.runtime.chance import random_below

SEEDS = 1_000_000
INSTANCES_MAX = 16
PARTITIONS_MAX = 64
RATE_MAX = 5_000
SPARK_START_S = 300.0
"""Time for Spark to start and to process its first batch, also after the last fault."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.usage = (
        "barnabas prove --input TOPIC --output TOPIC [options] -- PROGRAM...\n"
        "       barnabas prove --spark FILE [options]"
    )
    parser.add_argument("program", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--input", metavar="TOPIC", help="topic that the program consumes")
    parser.add_argument("--output", metavar="TOPIC", help="topic that the program writes")
    parser.add_argument(
        "--id", type=_id_rule, default=IdRule(), metavar="PART",
        help="id: key (default), header:NAME, json:FIELD",
    )  # fmt: skip
    parser.add_argument(
        "--seconds", type=seconds, default=30.0, metavar="N",
        help="duration of the faults (default 30)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=whole_number, metavar="N",
        help="seed of inputs and faults (default: drawn)",
    )  # fmt: skip
    parser.add_argument(
        "--instances", type=lambda text: whole_number(text, least=1, most=INSTANCES_MAX),
        default=2, metavar="N", help="instances of the program (default 2)",
    )  # fmt: skip
    parser.add_argument(
        "--partitions", type=lambda text: whole_number(text, least=1, most=PARTITIONS_MAX),
        default=3, metavar="N", help="partitions of each topic (default 3)",
    )  # fmt: skip
    parser.add_argument(
        "--rate", type=lambda text: whole_number(text, least=1, most=RATE_MAX),
        default=50, metavar="N", help="inputs per second, about (default 50)",
    )  # fmt: skip
    parser.add_argument(
        "--faults", type=_faults, default=tuple(schedule.KINDS), metavar="NAME,NAME",
        help="faults by name, or none (default all)",
    )  # fmt: skip
    add_bootstrap(parser, "existing brokers (default: an own one)")
    parser.add_argument("--replay", metavar="FILE", help="inputs: lines of consume --format json")
    parser.add_argument("--judge", metavar="FILE", help="Python file with judge(inputs, outputs)")
    parser.add_argument("--spark", metavar="FILE", help="pipeline, in place of a program")
    add_flag(parser, "--minimise", "find the shortest failing schedule")
    parser.add_argument(
        "--expect", choices=judge.EXPECTATIONS, default=judge.EXACTLY, metavar="WHAT",
        help="exactly-, at-least- or at-most-once",
    )  # fmt: skip
    parser.add_argument(
        "--format", choices=("text", "json", "junit"), default="text",
        help="the verdict as text, JSON, or JUnit XML",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Run the program, and print the verdict: 0 proved, 1 not, 2 no verdict."""
    if bool(arguments.program) == bool(arguments.spark):
        raise CommandError("no program: add -- and its command line, or --spark FILE", USAGE)
    source, target, judged_by = _topics_and_judge(arguments)
    if source == target:
        raise CommandError(f"--input and --output are one topic: {source}", USAGE)
    judged = judge_file(judged_by) if judged_by else None
    seed = random_below(SEEDS) if arguments.seed is None else arguments.seed
    options = Options(
        arguments.program or spark_command(arguments.spark),
        source,
        target,
        seconds=arguments.seconds,
        seed=seed,
        instances=arguments.instances if arguments.program else 1,
        partitions=arguments.partitions,
        rate=arguments.rate,
        rule=arguments.id,
        faults=arguments.faults,
        expectation=arguments.expect,
        servers=addresses(arguments.bootstrap_server) if arguments.bootstrap_server else (),
        own_judge=None if judged is None else judged.judge,
        own_inputs=None if judged is None else judged.inputs,
        tables={} if judged is None else judged.tables,
        replay=arguments.replay,
        start_s=SPARK_START_S if arguments.spark else Options.start_s,
        settle_s=SPARK_START_S if arguments.spark else Options.settle_s,
    )
    with Interruption() as interruption:
        try:
            with interruption.wait():
                proof = prove(options, _print_progress)
                if arguments.minimise and not proof.verdict.is_proved:
                    proof = minimised(options, proof, _print_progress)
        except KeyboardInterrupt:
            return interruption.exit_code
        except NothingTried as problem:
            for line in problem.output.splitlines():
                print_text(f"  {line}", file=sys.stderr)
            reason, output = f"nothing was tried: {problem}", problem.output
        except (CommandError, Rejected, Unreachable, OSError) as problem:
            reason, output = str(problem), ""
        else:
            return _print(proof, arguments.format)
    return _print_failure(Failure(options, reason, output), arguments.format)


def _topics_and_judge(arguments: argparse.Namespace) -> tuple[str, str, str]:
    """Return the input, the output and the judge, by default those of the pipeline's file."""
    source, target = arguments.input or "", arguments.output or ""
    if source and target:
        return source, target, arguments.judge or ""
    if not arguments.spark:
        raise CommandError("no topics: add --input TOPIC and --output TOPIC", USAGE)
    found = declared(arguments.spark)
    return source or found.source, target or found.target, arguments.judge or found.judge


def spark_command(path: str) -> list[str]:
    """Return the command line that runs a pipeline; its checkpoint ends with the run."""
    options = ["--servers", "{servers}", "--checkpoint", "{directory}/checkpoints"]
    return [sys.executable, "-m", "barnabas.spark", "run", path, *options]


def _print(proof: Proof, output_format: str) -> int:
    if output_format == "json":
        print_json(as_json(proof))
    else:
        _print_lines(lines(proof) if output_format == "text" else as_junit(proof).splitlines())
    return OK if proof.verdict.is_proved else FAILED


def _print_failure(failure: Failure, output_format: str) -> int:
    """Print the reason of a missing verdict, and return USAGE: FAILED is a verdict."""
    if output_format == "json":
        print_json(failure_as_json(failure))
    elif output_format == "junit":
        _print_lines(failure_as_junit(failure).splitlines())
    return report(failure.reason, USAGE)


def _print_lines(found: Iterable[str]) -> None:
    for line in found:
        print_text(line)


def _print_progress(text: str) -> None:
    print_text(f"barnabas prove: {text}", file=sys.stderr, flush=True)


def _id_rule(text: str) -> IdRule:
    try:
        return IdRule.parse(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


def _faults(text: str) -> tuple[str, ...]:
    names = tuple(filter(None, text.split(",")))
    if names == ("none",):
        return ()
    for name in names:
        if name not in schedule.KINDS:
            known = ", ".join(schedule.KINDS)
            raise argparse.ArgumentTypeError(f"{name} is not one of {known}, none")
    return names
