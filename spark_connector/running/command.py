"""`python -m barnabas.spark run my_pipeline.py`: run the pipelines of a file with Spark.

A file that ends with `barnabas.spark.run(pipeline)` is a program of its own, for `spark-submit`.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NoReturn

from barnabas.spark_connector.errors import SinkError, WrongOption
from barnabas.spark_connector.failures.sentences import sentence_of
from barnabas.spark_connector.monitoring.monitoring import HOST
from barnabas.spark_connector.pipelines.checks import check_configuration, check_pipelines
from barnabas.spark_connector.pipelines.pipeline import Pipeline
from barnabas.spark_connector.pipelines.shapes import check_shapes
from barnabas.spark_connector.refusals import Refusal, WrongUse
from barnabas.spark_connector.running.doctor import PYTHON_SETTING, examine
from barnabas.spark_connector.running.runner import Plan, run
from barnabas.spark_connector.running.screen import FORMATS, TEXT, Screen
from barnabas.spark_connector.session.class_path import with_packages
from barnabas.spark_connector.session.jars import jars_of_installed_spark
from barnabas.spark_connector.session.quiet import quiet_warnings
from barnabas.spark_connector.session.spark_log import SparkLog
from barnabas.spark_connector.session.spark_process import check_master, is_submitted
from barnabas.spark_connector.session.stopping import Stop, Stopped
from barnabas.spark_connector.settings.servers import DEFAULT_SERVERS_VARIABLE

PROGRAM: Final = "barnabas.spark"
COMMANDS: Final = "run,jars,doctor"
OK, FAILED, USAGE = 0, 1, 2
LOCAL: Final = "local[*]"


class Parser(argparse.ArgumentParser):
    """Parser that reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        """Print the message and exit with 2."""
        self.exit(USAGE, f"{PROGRAM}: {message}; see python -m {PROGRAM} {{{COMMANDS}}} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 failed, 2 wrong usage."""
    parsed = _parser().parse_args(arguments)
    if parsed.command == "jars":
        return _command(parsed, lambda _log: _show_jars())
    if parsed.command == "doctor":
        return _command(parsed, lambda _log: _examine(parsed))
    return _command(parsed, lambda log: _run(parsed, lambda: pipelines_of(Path(parsed.file)), log))


def run_given(pipelines: Sequence[Pipeline], arguments: Sequence[str] | None = None) -> int:
    """Run pipelines with the options of `run`, without a file; return the exit code."""
    parser = Parser(description="Run the pipelines of this file with Spark.")
    add_options(parser)
    parsed = parser.parse_args(arguments)
    return _command(parsed, lambda log: _run(parsed, lambda: _by_name(pipelines), log))


def _command(parsed: argparse.Namespace, action: Callable[[SparkLog], None]) -> int:
    if not parsed.verbose:
        quiet_warnings(PROGRAM)
    with SparkLog(verbose=parsed.verbose) as log:
        try:
            action(log)
        except (Stopped, KeyboardInterrupt):
            # At its start Spark handles Ctrl-C itself for a moment.
            return OK
        except Exception as error:  # noqa: BLE001 - the one place where errors become a line
            if parsed.verbose:
                traceback.print_exception(error)
            return _report(error, log)
        return OK


def _parser() -> Parser:
    parser = Parser(prog=f"python -m {PROGRAM}", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar=f"{{{COMMANDS}}}")
    run = commands.add_parser("run", help="run the pipelines of a file until SIGTERM or Ctrl-C")
    run.add_argument("file", help="a Python file with one or more Pipelines at its top level")
    add_options(run)
    jars = commands.add_parser("jars", help="print where the jars of Spark's Kafka connector are,"
        " with commas between them, as spark-submit --jars takes them")  # fmt: skip
    _add_verbose(jars)
    doctor = commands.add_parser("doctor", help="check Python, packages, Java, jars and brokers")
    doctor.add_argument("--servers", metavar="HOST:PORT",
        help=f"brokers to check as well ({DEFAULT_SERVERS_VARIABLE})")  # fmt: skip
    doctor.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE",
        help=f"a setting of Spark: {PYTHON_SETTING} names the Python of tasks")  # fmt: skip
    _add_verbose(doctor)
    return parser


def add_options(verb: argparse.ArgumentParser) -> None:
    """Add the options of `run` to a parser."""
    verb.add_argument("--pipeline", action="append", default=[], metavar="NAME",
        help="only the pipeline with this name or sink id; may be repeated")  # fmt: skip
    verb.add_argument("--once", action="store_true", help="end when all present input is processed")
    verb.add_argument("--servers", metavar="HOST:PORT",
        help="brokers, where the file names none (localhost:9092)")  # fmt: skip
    verb.add_argument("--checkpoint", default="checkpoints", metavar="DIR",
        help="path or URI of the checkpoints, one directory per sink ID (%(default)s)")  # fmt: skip
    verb.add_argument("--master", metavar="URL",
        help=f"master URL of Spark ({LOCAL}); spark-submit has its own")  # fmt: skip
    verb.add_argument("--packages", action="append", default=[],
        metavar="GROUP:ARTIFACT:VERSION[,...]",
        help="packages for Spark beside its Kafka connector; may be repeated")  # fmt: skip
    verb.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE",
        help="a setting of Spark; may be repeated")  # fmt: skip
    verb.add_argument("--ui", action="store_true", help="start Spark's UI, and print its address")
    verb.add_argument("--metrics-port", metavar="[HOST:]PORT",
        help="serve metrics of the exactly-once pipelines for Prometheus at /metrics;"
        " without a host on 127.0.0.1")  # fmt: skip
    verb.add_argument("--format", choices=sorted(FORMATS), default=TEXT, metavar="FORMAT",
        help=f"format of the line of each batch: {' or '.join(FORMATS)} (%(default)s)")  # fmt: skip
    _add_verbose(verb)


def _add_verbose(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--verbose", action="store_true",
        help="show what Spark prints, and tracebacks")  # fmt: skip


def _run(
    parsed: argparse.Namespace, find: Callable[[], dict[str, Pipeline]], log: SparkLog
) -> None:
    stop = Stop()
    stop.on_signals()
    if parsed.servers:
        os.environ[DEFAULT_SERVERS_VARIABLE] = parsed.servers
    master = _master(parsed)
    settings = with_packages(dict(map(_setting, parsed.conf)), parsed.packages)
    if parsed.ui:
        settings["spark.ui.enabled"] = "true"
    with Screen(parsed.format) as screen:
        named = find()
        check_shapes(named)
        pipelines = _chosen(named, parsed.pipeline)
        check_pipelines(pipelines)
        check_configuration(pipelines, settings)
        plan = Plan(
            pipelines=pipelines,
            checkpoints=parsed.checkpoint,
            master=master,
            settings=settings,
            once=parsed.once,
            metrics_at=_metrics_at(parsed.metrics_port),
        )
        run(plan, screen, stop, log)


def _show_jars() -> None:
    sys.stdout.write(",".join(str(jar) for jar in jars_of_installed_spark()) + "\n")


def _examine(parsed: argparse.Namespace) -> None:
    failures = 0
    for finding in examine(dict(map(_setting, parsed.conf)), parsed.servers):
        sys.stdout.write(f"{finding.as_line()}\n")
        sys.stdout.flush()
        failures += not (finding.is_good or finding.is_note)
    if failures:
        raise Refusal(f"checks failed: {failures}; each line with FAIL says what to do")


def _master(parsed: argparse.Namespace) -> str | None:
    """Return the master, or `None` with spark-submit, which has its own settings."""
    if is_submitted():
        if parsed.master is not None or parsed.packages or parsed.conf or parsed.ui:
            raise WrongUse("--master, --packages, --conf and --ui are for spark-submit to say here")
        return None
    master = LOCAL if parsed.master is None else str(parsed.master)
    check_master(master)
    return master


def _metrics_at(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    host, colon, port = text.rpartition(":")
    is_host = bool(host) or not colon
    if not is_host or not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise WrongUse(f"--metrics-port {text} is not PORT or HOST:PORT")
    return host.removeprefix("[").removesuffix("]") or HOST, int(port)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise WrongUse(f"--conf {text} is not KEY=VALUE")
    return name, value


def pipelines_of(path: Path) -> dict[str, Pipeline]:
    """Run a file and return the pipelines at its top level, by the names they have there."""
    if not path.is_file():
        raise WrongUse(f"file {path} does not exist")
    # The file can import modules beside it, as with `python file`.
    sys.path.insert(0, str(path.parent.absolute()))
    try:
        found = runpy.run_path(str(path), run_name="__pipeline__")
    except (Refusal, SinkError):
        raise
    except SyntaxError as error:
        raise WrongUse(f"{error.filename}, line {error.lineno}: {error.msg}") from error
    except SystemExit as error:
        raise WrongUse(f"{path} cannot be run: it ends Python itself") from error
    except Exception as error:
        if _needs_spark(error):
            raise WrongUse(
                f"{path} cannot be run: {_place(error, path)}this needs Spark, which starts after"
                " the file was read; move it into the function transform"
            ) from error
        raise WrongUse(
            f"{path} cannot be run: {type(error).__name__}: {_place(error, path)}{error}"
        ) from error
    pipelines = {name: each for name, each in found.items() if isinstance(each, Pipeline)}
    if not pipelines:
        raise WrongUse(f"{path} has no Pipeline at its top level: `pipeline = Pipeline(...)`")
    return pipelines


def _by_name(pipelines: Sequence[Pipeline]) -> dict[str, Pipeline]:
    for each in pipelines:
        if not isinstance(each, Pipeline):
            raise WrongUse(f"run() was given {type(each).__name__}, not a Pipeline")
    if not pipelines:
        raise WrongUse("run() was given no Pipeline")
    check_shapes({str(number): each for number, each in enumerate(pipelines, 1)})
    check_pipelines(pipelines)
    return {each.name: each for each in pipelines}


def _needs_spark(error: Exception) -> bool:
    """Return whether PySpark failed for lack of a session: with its error or (F.col) an
    assertion.
    """
    frames = traceback.extract_tb(error.__traceback__)
    is_pyspark = bool(frames) and "pyspark" in Path(frames[-1].filename).parts
    is_assertion = isinstance(error, AssertionError) and is_pyspark
    return is_assertion or "SESSION_OR_CONTEXT_NOT_EXISTS" in str(error)


def _place(error: Exception, path: Path) -> str:
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return f"line {lines[-1]}: " if lines else ""


def _chosen(pipelines: dict[str, Pipeline], wanted: Sequence[str]) -> list[Pipeline]:
    # One object under two names is one pipeline.
    distinct = {id(each): each for each in pipelines.values()}
    if not wanted:
        return list(distinct.values())
    chosen = []
    for name in wanted:
        found = [each for key, each in pipelines.items() if name in {key, each.name}]
        if not found:
            names = ", ".join(sorted(pipelines))
            raise WrongUse(f"pipeline {name!r} does not exist; the file has {names}")
        chosen.append(found[0])
    return list({id(each): each for each in chosen}.values())


def _report(error: Exception, log: SparkLog) -> int:
    """Print an error in one line; return the exit code."""
    line = str(error) if isinstance(error, Refusal | SinkError) else sentence_of(error)
    path = log.keep()
    where = f" (Spark's log: {path})" if path is not None else ""
    sys.stderr.write(f"{PROGRAM}: {' '.join(line.split())}{where}\n")
    if isinstance(error, WrongOption):
        return USAGE
    return error.exit_code if isinstance(error, Refusal) else FAILED
