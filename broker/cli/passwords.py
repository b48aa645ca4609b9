"""Sources of a new password: a prompt, standard input, a file."""

from __future__ import annotations

import argparse
import getpass
import sys
from typing import Final

from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.storage.files.io import LocalFileSystem

_BYTES_MAX: Final = 4096


def add_password(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a file."""
    parser.add_argument(
        "--password-file",
        metavar="FILE",
        help="file with the password in its first line (default: prompt, or standard input)",
    )


def password_of(arguments: argparse.Namespace, prompt: str) -> str:
    """Return the password; raises CommandError for a missing or invalid one."""
    if arguments.password_file is not None:
        where = arguments.password_file
        try:
            data = LocalFileSystem().read_file(where)
        except OSError as error:
            raise CommandError(f"{where}: {error.strerror}", USAGE) from None
        return _password(data, where)
    if not sys.stdin.isatty():
        return _password(sys.stdin.buffer.readline(_BYTES_MAX + 2), "standard input")
    try:
        first, again = getpass.getpass(f"{prompt}: "), getpass.getpass("Once more: ")
    except EOFError:
        raise CommandError("no password was entered at the prompt") from None
    if first != again:
        raise CommandError("the two passwords differ; no change was made")
    return _password(first.encode(), "the prompt")


def _password(data: bytes, where: str) -> str:
    """Read the first line, which is never shown."""
    line = data.split(b"\n", 1)[0].removesuffix(b"\r")
    if not line:
        raise CommandError(f"no password is in {where}", USAGE)
    if len(line) > _BYTES_MAX:
        raise CommandError(f"the password in {where} is longer than {_BYTES_MAX} bytes", USAGE)
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise CommandError(f"the password in {where} is not UTF-8", USAGE) from None
