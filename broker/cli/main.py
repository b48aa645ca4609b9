"""``barnabas``: the commands, and the one place where errors become a line and an exit code.

A command is a module with ``add_arguments(parser)`` and ``run(arguments)``, imported when it is
called: the start-up time of ``serve`` and ``ready`` depends on that.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import signal
import sys
from collections.abc import Collection, Sequence
from types import ModuleType

from barnabas.broker.admin.exchange import Rejected
from barnabas.broker.cli.arguments import Parser, choose_server, hint_of
from barnabas.broker.cli.errors import FAILED, INTERRUPTED, OK, USAGE, CommandError, report
from barnabas.broker.cli.printing import print_text
from barnabas.broker.client.errors import Unreachable, WrongSetting
from barnabas.protocol.errors import KafkaError

COMMANDS = {
    "serve": "run a broker until SIGTERM or Ctrl-C",
    "init": "write the configuration of a broker with TLS and users",
    "ready": "check that a broker responds: exit code 0 or 1",
    "config": "print a broker's effective configuration and its sources",
    "cluster": "describe a cluster, configure brokers, move partitions",
    "topics": "list, describe, create, delete and alter topics",
    "groups": "list, describe, reset and delete consumer groups",
    "transactions": "list, describe and abort transactions, find blocking ones",
    "acls": "list, add and remove ACLs",
    "users": "list, create, alter and delete SCRAM users",
    "quotas": "list, set and remove quotas of clients",
    "produce": "write lines of standard input to a topic",
    "consume": "print the records of topics",
    "records": "delete records before an offset or a time",
    "prove": "try a program for exactly once under faults",
    "bench": "measure how fast a broker writes and reads",
    "dump-log": "show the contents of data files",
    "check": "verify a data directory, or the objects of a cluster",
    "backup": "copy the data directory of a broker, also while it runs",
    "restore": "create a data directory from a backup",
    "objects": "delete the objects of a cluster that no longer exists",
    "completion": "print completion code for bash or zsh",
}
"""Name and one line of help of each command; ``dump-log`` is the module ``dump_log``."""

VERDICTS = {"check", "prove", "ready"}
"""Commands whose exit code 0 means that something is healthy or proved."""

_DESCRIPTION = "A durable broker that speaks Kafka's wire protocol."
_EPILOG = (
    "Without arguments 'barnabas serve' is a working broker on localhost:9092 with its "
    "data in ./data. Exit codes: 0 done, 1 failed, 2 not understood."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 failed, 2 wrong usage."""
    _open_closed_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    parsed = parser_with(COMMANDS.keys() & given[:1]).parse_args(given)
    _obey_signals()
    if (hint := hint_of(parsed)) is not None:
        print_text(hint, file=sys.stderr)
    try:
        choose_server(parsed)
        result: int = _module(parsed.command).run(parsed)
        sys.stdout.flush()
    except CommandError as error:
        return _ended(report(str(error), error.exit_code))
    except (Rejected, Unreachable) as error:
        return _ended(report(str(error), FAILED))
    except WrongSetting as error:  # A store of keys that cannot be used.
        return _ended(report(str(error), USAGE))
    except KafkaError as error:  # The broker lacks a request, or all versions of it that we know.
        return _ended(report(error.message, FAILED))
    except KeyboardInterrupt:
        return _ended(INTERRUPTED)
    except BrokenPipeError:  # What reads the output, ``head`` say, has seen enough.
        return _ended(FAILED if parsed.command in VERDICTS else OK)
    except OSError as error:  # Commands explain their own; what is left is a full disk behind ">".
        place = error.filename or "standard output"
        return _ended(report(f"{place}: {error.strerror or error}", FAILED))
    except Exception as error:
        logging.getLogger(__name__).debug("internal error", exc_info=True)
        message = f"internal error: {error!r} (barnabas.log.level=DEBUG says more)"
        return _ended(report(message, FAILED))
    return result


def _obey_signals() -> None:
    """Raise KeyboardInterrupt at Ctrl-C and exit at SIGTERM, until a broker replaces the handlers.

    The kernel keeps SIGTERM from the first process of a container that has not asked for it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # It was, while modules were imported.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def _open_closed_streams() -> None:
    """Replace standard streams that the caller closed, so that no connection gets their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _ended(exit_code: int) -> int:
    """Flush standard output.

    The reader of the output might have closed it, or its disk is full; then Python's own flush at
    the end must not print an error.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exit_code


class _Version(argparse.Action):
    """The option ``--version``; the commit of a checkout is read for it only."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print the version and exit."""
        from barnabas.broker.runtime.build import version_text

        print_text(f"barnabas {version_text()}")
        parser.exit()


def _module(command: str) -> ModuleType:
    return importlib.import_module(f"barnabas.broker.cli.commands.{command.replace('-', '_')}")


def parser_with(chosen: Collection[str]) -> argparse.ArgumentParser:
    """Return the parser of the chosen commands; if there are none, the one that lists them all."""
    parser = Parser(
        prog="barnabas",
        usage="barnabas COMMAND [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print version and build")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, title="commands", prog="barnabas"
    )
    parser.expect_names("command", COMMANDS)
    for name in chosen or COMMANDS:
        text = COMMANDS[name]
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if chosen:
            _module(name).add_arguments(command)
    return parser
