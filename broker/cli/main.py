"""``barnabas``: the arguments, and the one place where errors become a line and an exit code.

Modules of commands are imported when their command is run: start-up is part of what ``serve`` and
``ready`` are measured by.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Sequence

from broker.cli.errors import FAILED, USAGE, CommandError
from broker.version import __version__

_DESCRIPTION = "A durable broker that speaks Kafka's wire protocol."
_EPILOG = (
    "Without arguments 'barnabas serve' is a working broker on localhost:9092 with its "
    "data in ./data. Keys are Kafka's own; see 'barnabas config'."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 failed, 2 not understood."""
    parsed = _parser().parse_args(arguments)
    try:
        command = importlib.import_module(f"broker.cli.{parsed.command}")
        result: int = command.run(parsed)
        sys.stdout.flush()
    except CommandError as error:
        return _report(str(error), error.exit_code)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python's own attempt to flush must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        logging.getLogger(__name__).debug("internal error", exc_info=True)
        return _report(f"internal error: {error!r} (barnabas.log.level=DEBUG says more)", FAILED)
    return result


def _report(message: str, exit_code: int) -> int:
    line = " ".join(message.split())
    print(f"barnabas: {line}", file=sys.stderr)
    return exit_code


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line instead of repeating the usage."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Exit with the usage code."""
        sys.exit(_report(f"{message} (see {self.prog} --help)", USAGE))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="barnabas", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"barnabas {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    serve = commands.add_parser("serve", help="run a broker until SIGTERM or Ctrl-C")
    _add_configuration(serve)
    config = commands.add_parser("config", help="print the effective configuration and its sources")
    _add_configuration(config)
    _add_format(config)
    ready = commands.add_parser("ready", help="ask whether a broker answers: exit code 0 or 1")
    _add_configuration(ready)
    ready.add_argument(
        "-b",
        "--bootstrap-server",
        "--bootstrap-servers",
        metavar="HOST:PORT",
        help="the broker to ask (default: the first listener of the configuration)",
    )
    ready.add_argument(
        "--timeout", type=float, default=3.0, metavar="SECONDS", help="how long to wait (default 3)"
    )
    return parser


def _add_configuration(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "properties", nargs="?", metavar="server.properties", help="a Kafka configuration file"
    )
    parser.add_argument(
        "-X",
        "--override",
        action="append",
        default=[],
        metavar="key=value",
        help="set a key, over the file and KAFKA_* of the environment; repeatable",
    )


def _add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text")
