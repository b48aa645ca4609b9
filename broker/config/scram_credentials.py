"""``barnabas.scram.credentials``: SCRAM users that a start creates if they do not exist.

The syntax is that of ``kafka-storage format --add-scram`` (KIP-900), with commas or semicolons
between several::

    SCRAM-SHA-256=[name=alice,password=secret],SCRAM-SHA-512=[name="bob",password="se,cret"]

``iterations`` and ``salt`` (base64) are optional; ``saltedpassword`` (base64) with a ``salt``
replaces a password. Errors never repeat the text, since it contains passwords.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas.broker.config.types import Value
from barnabas.protocol.sasl.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISMS,
    ScramMechanism,
)

FORM: Final = "SCRAM-SHA-256=[name=...,password=...], separated by commas"
_KEYS: Final = ("name", "password", "salt", "iterations", "saltedpassword")
_ENTRY: Final = re.compile(r'\s*([\w-]+)\s*=\s*\[((?:"[^"]*"|[^"\]])*)\]\s*')
_FIELD: Final = re.compile(r'\s*(\w+)\s*=\s*("[^"]*"|[^",]*)\s*')


class MalformedCredentials(Exception):
    """The text names no users; the message has the reason, without the text."""


@dataclass(frozen=True, slots=True)
class NewCredential:
    """User to create; either ``password`` or ``salted_password`` is given."""

    mechanism: ScramMechanism
    user: str
    password: str | None = field(default=None, repr=False)
    salt: bytes | None = field(default=None, repr=False)
    iterations: int | None = None
    salted_password: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ScramCredentials:
    """The validator of the key."""

    def problem(self, value: Value) -> str | None:
        """Return the error of the value, or None."""
        try:
            parse_scram_credentials(str(value))
        except MalformedCredentials as error:
            return str(error)
        return None

    @property
    def accepted(self) -> str:
        """Description of the accepted form."""
        return FORM


def parse_scram_credentials(text: str) -> list[NewCredential]:
    """Return the users that a text names; raises MalformedCredentials."""
    found: list[NewCredential] = []
    position = 0
    while text[position:].strip():
        if found:
            if text[position] not in ",;":
                raise MalformedCredentials(f"credential {len(found)} is followed by no comma")
            position += 1
        entry = _ENTRY.match(text, position)
        if entry is None:
            raise MalformedCredentials(f"credential {len(found) + 1} is not of the form {FORM}")
        mechanism = MECHANISMS.get(entry[1])
        if mechanism is None:
            raise MalformedCredentials(f"credential {len(found) + 1} is of no SCRAM mechanism")
        new = _credential(mechanism, _fields(entry[2], len(found) + 1), len(found) + 1)
        if any((new.user, mechanism) == (each.user, each.mechanism) for each in found):
            raise MalformedCredentials(f"user {new.user} occurs twice with {mechanism.name}")
        found.append(new)
        position = entry.end()
    return found


def _fields(text: str, number: int) -> dict[str, str]:
    fields: dict[str, str] = {}
    position = 0
    while position < len(text):
        if fields:
            position += 1  # the comma
        each = _FIELD.match(text, position)
        if each is None or (each.end() < len(text) and text[each.end()] != ","):
            raise MalformedCredentials(f"credential {number} must consist of key=value, by commas")
        if each[1] not in _KEYS or each[1] in fields:
            raise MalformedCredentials(
                f"credential {number} may have each of {', '.join(_KEYS)} once, nothing else"
            )
        fields[each[1]] = each[2].strip().strip('"')
        position = each.end()
    return fields


def _credential(mechanism: ScramMechanism, fields: Mapping[str, str], number: int) -> NewCredential:
    user = fields.get("name", "")
    password = fields.get("password")
    salted = _decoded(fields, "saltedpassword", number)
    salt = _decoded(fields, "salt", number)
    iterations = fields.get("iterations")
    if not user:
        raise MalformedCredentials(f"credential {number} has no name")
    if (password is None) == (salted is None) or password == "":
        raise MalformedCredentials(f"{user} needs either a password or a saltedpassword")
    if salted is not None and (salt is None or len(salted) != mechanism.digest_bytes):
        raise MalformedCredentials(
            f"the saltedpassword of {user} needs a salt, and {mechanism.digest_bytes} bytes"
        )
    if iterations is not None and not (
        iterations.isascii()
        and iterations.isdigit()
        and len(iterations) < 10
        and ITERATIONS_MIN <= int(iterations) <= ITERATIONS_MAX
    ):
        raise MalformedCredentials(
            f"the iterations of {user} must be from {ITERATIONS_MIN} to {ITERATIONS_MAX}"
        )
    count = None if iterations is None else int(iterations)
    return NewCredential(mechanism, user, password, salt, count, salted)


def _decoded(fields: Mapping[str, str], key: str, number: int) -> bytes | None:
    if key not in fields:
        return None
    try:
        decoded = binascii.a2b_base64(fields[key].encode(), strict_mode=True)
    except (ValueError, UnicodeEncodeError) as error:
        raise MalformedCredentials(f"{key} of credential {number} is not base64") from error
    if not decoded:
        raise MalformedCredentials(f"{key} of credential {number} is empty")
    return decoded
