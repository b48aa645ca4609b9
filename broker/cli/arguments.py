"""Common parts of the commands' arguments: the parser, the help's layout, shared options."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Collection, Sequence
from typing import NoReturn

from barnabas.broker.admin.positions import BadPosition, Position
from barnabas.broker.cli.client_settings import client_security
from barnabas.broker.cli.errors import USAGE, CommandError, report
from barnabas.broker.cli.names import name_problem
from barnabas.broker.cli.profiles import DEFAULT_SERVER, server_of

_ADDRESS = re.compile(r"(?:\[([^\]]+)\]|([^\[\]:]+)):([0-9]{1,5})")
_HELP_COLUMN = 36
_OWN_OPTIONS = {"-h", "--help", "--version"}

Address = tuple[str, int]


Verbs = argparse._SubParsersAction  # noqa: SLF001  The type has no public name.


class HelpFormatter(argparse.HelpFormatter):
    """One line for an option, alike in all versions of Python; spellings after the second hide."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=_HELP_COLUMN)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        shown = ", ".join(action.option_strings[:2])
        if action.nargs == 0:
            return shown
        choices = "|".join(map(str, action.choices)) if action.choices else ""
        return f"{shown} {action.metavar or choices or action.dest.upper()}"

    def add_argument(self, action: argparse.Action) -> None:
        """Reserve the width of the verbs with their indentation, which argparse ignores."""
        super().add_argument(action)
        if isinstance(action, Verbs):
            longest = max(map(len, action.choices), default=0)
            needed = longest + self._current_indent + self._indent_increment
            self._action_max_length = max(self._action_max_length, needed)

    def _format_action(self, action: argparse.Action) -> str:
        if isinstance(action, Verbs):  # Without the common heading of the verbs.
            return "".join(map(self._format_action, self._iter_indented_subactions(action)))
        return super()._format_action(action)


class Parser(argparse.ArgumentParser):
    """Parser that reports an error in one line instead of repeating the usage."""

    def __init__(self, *, usage: str | None = None, **options: object) -> None:
        super().__init__(
            usage=usage,
            formatter_class=HelpFormatter,
            allow_abbrev=False,
            **options,  # type: ignore[arg-type]
        )
        self._kind = ""
        self._names: Collection[str] = ()
        self._hidden: frozenset[str] = frozenset()

    def expect_names(
        self, kind: str, names: Collection[str], hidden: frozenset[str] = frozenset()
    ) -> None:
        """Require one of ``names``, or of ``hidden`` ones, as the first word."""
        self._kind, self._names, self._hidden = kind, names, hidden

    def parse_known_args(  # type: ignore[override]  # Overloaded for namespaces of other classes.
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Reject a first word that is no name, and suggest one; argparse only lists all names."""
        given = list(sys.argv[1:] if args is None else args)
        if self._names and given and not {given[0]} & (_OWN_OPTIONS | self._hidden):
            problem = name_problem(self._kind, self._names, given, self.prog)
            if problem is not None:
                self.error(problem)
        return super().parse_known_args(given, namespace)

    def error(self, message: str) -> NoReturn:
        """Exit with the usage code."""
        sys.exit(report(f"{message} (see {self.prog} --help)", USAGE))


def hint_of(arguments: argparse.Namespace) -> str | None:
    """Return a hint at the new verb, or ``None`` if the used one is not old."""
    old = getattr(arguments, "old_verb", None)
    if old is None:
        return None
    command, verb = arguments.command, arguments.verb
    return f"hint: the verb is {verb}: barnabas {command} {verb} (in place of {old})"


def add_server(parser: argparse.ArgumentParser, *, timeout_seconds: int = 10) -> None:
    """Add the options of a cluster: its brokers, its access and the timeout of requests."""
    add_bootstrap(parser, f"brokers (default {DEFAULT_SERVER})")
    parser.add_argument("--profile", metavar="NAME", help="profile with the brokers and settings")
    add_client_settings(parser)
    add_timeout(parser, timeout_seconds, "timeout of each request")


def add_bootstrap(parser: argparse.ArgumentParser, text: str) -> None:
    """Add the option that names brokers."""
    parser.add_argument(
        "-b", "--bootstrap-server", "--bootstrap-servers", metavar="HOST:PORT", help=text
    )


def add_timeout(parser: argparse.ArgumentParser, default: int, text: str) -> None:
    """Add the option of a time limit in seconds."""
    parser.add_argument(
        "--timeout", type=seconds, default=float(default), metavar="SECONDS",
        help=f"{text} (default {default})",
    )  # fmt: skip


def add_client_settings(parser: argparse.ArgumentParser) -> None:
    """Add the client settings for TLS and authentication."""
    parser.add_argument(
        "--command-config", metavar="FILE", help="Kafka's client settings: TLS and login"
    )
    parser.add_argument(
        "--command-property",
        action="append",
        type=client_property,
        default=[],
        metavar="KEY=VALUE",
        help="one such setting, no secret; repeatable",
    )


def choose_server(arguments: argparse.Namespace) -> None:
    """Set the server and the security settings of a command with clients; raises CommandError.

    ``arguments.security`` is None without settings.
    """
    if "command_config" not in arguments:
        return
    path = arguments.command_config
    if "profile" in arguments and arguments.bootstrap_server is None:
        server = server_of(arguments.profile, os.environ, path)
        arguments.bootstrap_server = server.addresses
        path = path or server.command_config
    arguments.security = client_security(path, arguments.command_property, os.environ)


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add the choice between a table and JSON."""
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="tables, or JSON for programs"
    )


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add a topic's settings."""
    parser.add_argument(
        "-X",
        "--config",
        action="append",
        type=setting,
        default=[],
        metavar="KEY=VALUE",
        help="set a key; repeatable",
    )


def add_unset(parser: argparse.ArgumentParser, kind: str) -> None:
    """Add the settings to remove; ``kind`` is the verb's noun for them."""
    parser.add_argument(
        "--unset", action="append", default=[], metavar="KEY",
        help=f"reset a {kind} to its default; repeatable",
    )  # fmt: skip


def changes_in(arguments: argparse.Namespace) -> list[tuple[str, str | None]]:
    """Return the changes that the options of ``add_settings`` and ``add_unset`` give."""
    return [*arguments.config, *((key, None) for key in arguments.unset)]


def add_flag(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    """Add an option without a value."""
    parser.add_argument(name, action="store_true", help=text)


def add_operand(
    parser: argparse.ArgumentParser,
    name: str,
    metavar: str,
    *,
    count: str | None = None,
    read: Callable[[str], object] = str,
) -> None:
    """Add the operand of a verb, which only the usage shows."""
    parser.add_argument(name, metavar=metavar, nargs=count, type=read, help=argparse.SUPPRESS)


def add_topics(parser: argparse.ArgumentParser, text: str, *, required: bool = False) -> None:
    """Add ``-t TOPIC[:N,N]``, which is repeatable."""
    parser.add_argument(
        "-t", "--topic", type=topic_partitions, action="append", default=None if required else [],
        required=required, metavar="TOPIC[:N,N]", help=text,
    )  # fmt: skip


def setting(text: str) -> tuple[str, str]:
    """Split ``key=value``."""
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise argparse.ArgumentTypeError(f"{text} is not KEY=VALUE")
    return key.strip(), value.strip()


def client_property(text: str) -> tuple[str, str]:
    """Split ``key=value``; the error does not repeat the text, which may have a password."""
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise argparse.ArgumentTypeError("expected KEY=VALUE, as in retention.ms=60000")
    return key.strip(), value.strip()


def header(text: str) -> tuple[str, str]:
    """Split ``key=value``; the value stays as it is."""
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise argparse.ArgumentTypeError(f"{text} is not KEY=VALUE")
    return key, value


def seconds(text: str) -> float:
    """Read a time to wait: above zero, at most a day."""
    value = _number(text)
    if not 0 < value <= 86_400:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds up to 86400")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a number") from None


def whole_number(text: str, *, least: int = 0, most: int = 2**31 - 1) -> int:
    """Read a whole number within bounds."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number") from None
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"{text} is not between {least} and {most}")
    return value


def positive_number(text: str) -> int:
    """Read a whole number above zero."""
    return whole_number(text, least=1)


def one_of(names: Sequence[str]) -> Callable[[str], str]:
    """Return a reader of one of ``names``, in any case."""

    def read(text: str) -> str:
        for name in names:
            if name.lower() == text.lower():
                return name
        raise argparse.ArgumentTypeError(f"{text} is not one of {', '.join(names)}")

    return read


def partition_numbers(text: str) -> list[int]:
    """Read ``0,3,5``."""
    return [whole_number(part) for part in text.split(",")]


def topic_partitions(text: str) -> tuple[str, list[int]]:
    """Parse ``orders`` or ``orders:0,3``; an empty list means all partitions."""
    topic, separator, numbers = text.partition(":")
    if not topic or (separator and not all(numbers.split(","))):
        raise argparse.ArgumentTypeError(f"{text} is not TOPIC or TOPIC:N,N")
    return topic, partition_numbers(numbers) if separator else []


def addresses(text: str) -> list[Address]:
    """Split ``host:port,[::1]:port``; raises CommandError."""
    found = []
    for item in text.split(","):
        match = _ADDRESS.fullmatch(item.strip())
        if match is None or not 0 < int(match[3]) < 65536:
            raise CommandError(f"{item.strip()} is not HOST:PORT", USAGE)
        found.append((match[1] or match[2], int(match[3])))
    return found


def position(text: str) -> Position:
    """Read a position in partitions; raises CommandError."""
    try:
        return Position.parse(text)
    except BadPosition as problem:
        raise CommandError(str(problem), USAGE) from None
