"""``barnabas init --renew``: another certificate for a broker that ``barnabas init`` has set up.

Of the same authority and for the same names, so that clients notice nothing and a broker that runs
takes it without a restart; with another key. The old file is replaced in one step.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from barnabas.broker.cli.errors import OK, USAGE, CommandError
from barnabas.broker.cli.output import print_json
from barnabas.broker.cli.printing import print_text

if TYPE_CHECKING:
    from barnabas.broker.security.tls.issuing import Authority

BROKER: Final = "broker.pem"
AUTHORITY: Final = "ca.pem"
AUTHORITY_KEY: Final = "ca.key"


def run(arguments: argparse.Namespace) -> int:
    """Replace the certificate, or change nothing."""
    # Imported here with its cryptography, as in the command that creates the first certificate.
    from barnabas.broker.security.tls.issuing import CannotIssue

    directory = os.path.abspath(arguments.directory)
    path = os.path.join(directory, BROKER)
    authority = os.path.join(directory, AUTHORITY)
    key = arguments.ca_key or os.path.join(directory, AUTHORITY_KEY)
    try:
        before = _read(path)
        renewed = _authority(authority, key).renew(before, arguments.host)
        _replace(path, renewed.key_pem + renewed.certificate_pem)
    except CannotIssue as error:
        raise CommandError(f"{path}: {error}") from None
    except OSError as error:
        raise CommandError(f"{error.filename or path}: {error.strerror}") from None
    ends = f"{renewed.not_after:%Y-%m-%dT%H:%M:%SZ}"
    if arguments.format == "json":
        print_json({"changed": True, "certificate": path, "valid_until": ends})
        return OK
    print_text(f"{path} is new, and valid until {ends}.")
    print_text("A broker that runs takes it within ten seconds, and its log says so.")
    return OK


def _authority(certificate: str, key: str) -> Authority:
    from barnabas.broker.security.tls.issuing import Authority, CannotIssue

    texts = _read(certificate), _read(key)
    try:
        return Authority.load(*texts)
    except CannotIssue as error:
        raise CommandError(f"{certificate} with {key}: {error}", USAGE) from None


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except FileNotFoundError:
        hint = "; --ca-key says where it is" if path.endswith(AUTHORITY_KEY) else ""
        raise CommandError(f"{path}: No such file or directory{hint}", USAGE) from None
    except UnicodeDecodeError:
        raise CommandError(f"{path}: not PEM", USAGE) from None


def _replace(path: str, text: str) -> None:
    """Replace a file; only its owner can read it."""
    there = os.stat(path)
    directory = os.path.dirname(path)
    descriptor, temporary = tempfile.mkstemp(dir=directory, prefix=f"{BROKER}.")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            if os.geteuid() == 0:  # The broker that reads it is another user.
                os.fchown(file.fileno(), there.st_uid, there.st_gid)
            os.fchmod(file.fileno(), there.st_mode & 0o640)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
