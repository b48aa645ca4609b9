"""``barnabas init``: write the configuration of a first broker that asks who its clients are.

Into one directory: certificates of an authority made for it, settings of the broker, settings of
clients of one super user. No secret is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import stat
from base64 import b64encode
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from barnabas.broker.cli.arguments import add_format, whole_number
from barnabas.broker.cli.directory import renewal
from barnabas.broker.cli.errors import OK, USAGE, CommandError
from barnabas.broker.cli.output import print_json
from barnabas.broker.config.addresses import address_text
from barnabas.broker.config.loading.properties import properties_text
from barnabas.broker.config.security import STANDARD_AUTHORIZER
from barnabas.broker.security.sasl.client_settings import ClientSettings
from barnabas.broker.security.sasl.scram_users import new_salt
from barnabas.protocol.sasl.scram import ITERATIONS_MIN, SCRAM_SHA_512, salted_password
from barnabas.storage.files.io import make_private_directory, private_opener

SETTINGS: Final = "server.properties"
_DEFAULT_PORT: Final = 9092
_DEFAULT_USER: Final = "admin"
_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1")
_USER: Final = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.:-]{0,61}[A-Za-z0-9])?")
_PASSWORD_BYTES: Final = 24
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_PUBLIC_FILE: Final = 0o644
_HEAD: Final = """\
# Written by 'barnabas init --secure' for 'barnabas serve'. 'barnabas config' shows all other keys.
# {user} is a super user; 'barnabas users' and 'barnabas acls' manage the others. The
# password is in the files {user}.*; this file has the credential that verifies it.
"""


class _File(NamedTuple):
    """A file to write."""

    name: str
    text: str
    is_public: bool = False
    """Whether others than the owner may read it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the directory, and the host names for clients."""
    parser.usage = "barnabas init --secure|--renew DIRECTORY [options]"
    parser.add_argument("directory", metavar="DIRECTORY", help=argparse.SUPPRESS)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--secure", action="store_true", help="with TLS, authentication and ACLs")
    what.add_argument("--renew", action="store_true", help="only create another server certificate")
    parser.add_argument(
        "--host", type=_host, action="append", default=[], metavar="NAME",
        help="further host name for clients; repeatable (default: only localhost)",
    )  # fmt: skip
    parser.add_argument(
        "--port", type=lambda text: whole_number(text, least=1, most=65535),
        metavar="N", help=f"port of the listener (default {_DEFAULT_PORT})",
    )  # fmt: skip
    parser.add_argument(
        "--user", type=_user, metavar="NAME",
        help="name of the superuser (default admin)",
    )  # fmt: skip
    parser.add_argument(
        "--if-not-exists", action="store_true", help="succeed if it was initialized before"
    )
    parser.add_argument(
        "--ca-key", metavar="FILE",
        help="with --renew: path of ca.key (default: in DIRECTORY)",
    )  # fmt: skip
    add_format(parser)
    parser.epilog = (
        "DIRECTORY must be empty, and only its owner may write to it; or not there yet. "
        "Nothing is ever overwritten, but by --renew the broker's own certificate."
    )


def _host(text: str) -> str:
    if not _HOST.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text} is no name or address of a host")
    return text


def _user(text: str) -> str:
    if not _USER.fullmatch(text):
        raise argparse.ArgumentTypeError("a name has up to 64 letters, digits, and . _ @ -")
    return text


def run(arguments: argparse.Namespace) -> int:
    """Write all files, or none."""
    if arguments.renew:
        if arguments.port or arguments.user or arguments.if_not_exists:
            raise CommandError("--renew changes the certificate only", USAGE)
        return renewal.run(arguments)
    if arguments.ca_key:
        raise CommandError("--ca-key is for --renew", USAGE)
    arguments.port = arguments.port or _DEFAULT_PORT
    arguments.user = arguments.user or _DEFAULT_USER
    directory = os.path.abspath(arguments.directory)
    if os.path.lexists(directory) and (not os.path.isdir(directory) or os.listdir(directory)):
        if arguments.if_not_exists and os.path.exists(os.path.join(directory, SETTINGS)):
            _print_result(directory, arguments, is_new=False)
            return OK
        raise CommandError(f"{arguments.directory}: exists already, and is not empty", USAGE)
    if os.path.isdir(directory) and os.stat(directory).st_mode & _WRITABLE_BY_OTHERS:
        # A user with write permission for a directory can replace the files in it.
        raise CommandError(
            f"{arguments.directory}: users other than its owner can write to it", USAGE
        )
    if not directory.isprintable():
        raise CommandError(
            "the name of the directory has characters that no file could hold", USAGE
        )
    try:
        _write(directory, _make(directory, arguments))
    except OSError as error:
        raise CommandError(f"{error.filename or directory}: {error.strerror}") from None
    _print_result(directory, arguments, is_new=True)
    return OK


# ------------------------------------------------------------------------------------------- make


def _make(directory: str, arguments: argparse.Namespace) -> list[_File]:
    # Imported here with its cryptography: this is the one command that makes certificates.
    from barnabas.broker.security.tls.issuing import Authority

    hosts = list(dict.fromkeys([*arguments.host, *_THIS_MACHINE]))
    authority = Authority.create("Barnabas CA")
    own = authority.issue(hosts[0], hosts)
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    user: str = arguments.user
    client = ClientSettings(
        servers=address_text(hosts[0], arguments.port),
        protocol="SASL_SSL",
        ca_location=os.path.join(directory, "ca.pem"),
        mechanism=SCRAM_SHA_512.name,
        user=user,
        password=password,
    )
    librdkafka = [f"{key}={value}\n" for key, value in client.librdkafka().items()]
    return [
        _File("ca.pem", authority.certificate_pem, is_public=True),
        _File("ca.key", authority.key_pem),
        _File("broker.pem", own.key_pem + own.certificate_pem),
        _File(f"{user}.properties", properties_text(client.java())),
        _File(f"{user}.librdkafka", "".join(librdkafka)),
        _File(f"{user}.json", json.dumps(client.kafka_python(), indent=2) + "\n"),
        # Last: where it is, all others are.
        _File(SETTINGS, _server_properties(directory, arguments, password)),
    ]


def _server_properties(directory: str, arguments: argparse.Namespace, password: str) -> str:
    port = arguments.port
    # A named host is meant for clients on other machines.
    listeners = {"listeners": f"SASL_SSL://{address_text(_THIS_MACHINE[0], port)}"}
    if arguments.host:
        advertised = f"SASL_SSL://{address_text(arguments.host[0], port)}"
        listeners = {"listeners": f"SASL_SSL://:{port}", "advertised.listeners": advertised}
    return _HEAD.format(user=arguments.user) + properties_text(
        {
            **listeners,
            "log.dirs": os.path.join(directory, "data"),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": os.path.join(directory, "broker.pem"),
            "sasl.enabled.mechanisms": SCRAM_SHA_512.name,
            "barnabas.scram.credentials": _credential(arguments.user, password),
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": f"User:{arguments.user}",
        }
    )


def _credential(user: str, password: str) -> str:
    """Return a SCRAM user in the form of ``barnabas.scram.credentials``, without the password."""
    salt = new_salt()
    salted = salted_password(SCRAM_SHA_512, password, salt, ITERATIONS_MIN)
    parts = {
        "name": user,
        "salt": b64encode(salt).decode(),
        "saltedpassword": b64encode(salted).decode(),
        "iterations": str(ITERATIONS_MIN),
    }
    listed = ",".join(f"{key}={value}" for key, value in parts.items())
    return f"{SCRAM_SHA_512.name}=[{listed}]"


# -------------------------------------------------------------------------------------- write, tell


def _write(directory: str, files: Iterable[_File]) -> None:
    """Write all files; if one fails, remove the others and raise its error."""
    written: list[str] = []
    make_private_directory(directory, exist_ok=True, parents=True)
    try:
        for name, text, is_public in files:
            path = os.path.join(directory, name)
            with open(path, "x", encoding="utf-8", opener=private_opener) as file:
                written.append(path)
                if is_public:
                    os.fchmod(file.fileno(), _PUBLIC_FILE)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
    except BaseException:
        for path in written:
            with suppress(OSError):
                os.unlink(path)
        raise


def _print_result(directory: str, arguments: argparse.Namespace, *, is_new: bool) -> None:
    """Print the created files and how clients use them."""
    from barnabas.broker.security.tls.issuing import CERTIFICATE_DAYS

    user = os.path.join(directory, arguments.user)
    server = os.path.join(directory, SETTINGS)
    clients = {
        "java": f"{user}.properties",
        "librdkafka": f"{user}.librdkafka",
        "kafka-python": f"{user}.json",
    }
    if arguments.format == "json":
        print_json({"changed": is_new, "server": server, "clients": clients})
        return
    if not is_new:
        print(f"{directory} is set up already; no change was made")
        return
    print(f"""\
Start the broker:
  barnabas serve {server}

{arguments.user} is a super user. The password is in these files, which only you can read:
  Java, kafka-*.sh and barnabas:  --command-config {clients["java"]}
  librdkafka, kcat:               -F {clients["librdkafka"]}
  kafka-python:                   KafkaProducer(**json.load(open("{clients["kafka-python"]}")))

Clients trust {os.path.join(directory, "ca.pem")}.
Move ca.key to another machine: it can sign certificates that all clients trust. The certificate of
the broker is valid for {CERTIFICATE_DAYS} days. To renew it:
  barnabas init --renew {directory} --ca-key .../ca.key""")
