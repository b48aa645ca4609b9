"""Secrets that variables name by files, so that they are not in the environment themselves.

As the start scripts of Kafka's image have it, ``KAFKA_SSL_KEYSTORE_FILENAME`` is a file below
``/etc/kafka/secrets``, and ``..._CREDENTIALS`` one that holds a password. As other images have it,
any variable of a secret may have ``_FILE`` behind its name, and the path of a file as its value.
A line end does not belong to a secret. Each of them wins over the plain variable.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from barnabas.broker.config.types import ConflictingValues

DIRECTORY: Final = "/etc/kafka/secrets"
FILE_SUFFIX: Final = "_FILE"
_SECRET_BYTES_MAX: Final = 64 * 1024

_STORES: Final = {
    "KAFKA_SSL_KEYSTORE_FILENAME": "ssl.keystore.location",
    "KAFKA_SSL_TRUSTSTORE_FILENAME": "ssl.truststore.location",
}
_PASSWORDS: Final = {
    "KAFKA_SSL_KEYSTORE_CREDENTIALS": "ssl.keystore.password",
    "KAFKA_SSL_KEY_CREDENTIALS": "ssl.key.password",
    "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "ssl.truststore.password",
}
VARIABLES: Final = frozenset((*_STORES, *_PASSWORDS))
"""Names of all environment variables with a secret."""


def image_secrets(environment: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield key, value and variable; raises ConfigError for a file that cannot be read."""
    for name, key in _STORES.items():
        if environment.get(name):
            yield key, os.path.join(DIRECTORY, environment[name]), name
    for name, key in _PASSWORDS.items():
        if environment.get(name):
            path = os.path.join(DIRECTORY, environment[name])
            yield key, secret_in(path, name), name


def secret_in(path: str, name: str) -> str:
    """Return the contents of a file that a variable names; raises ConfigError."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(_SECRET_BYTES_MAX + 1)
        if len(data) > _SECRET_BYTES_MAX:
            raise ConflictingValues(name, "", f"{name}: {path} is too long for a password")
        return data.decode().rstrip("\n")
    except OSError as error:
        raise ConflictingValues(name, "", f"{name}: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConflictingValues(name, "", f"{name}: {path} is not UTF-8") from None
