"""Reading the files that commands are given: a broker's, or those with client settings."""

from __future__ import annotations

from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.config.loading.properties import (
    MalformedProperties,
    Property,
    parse_properties,
)


def read_properties(path: str) -> list[Property]:
    """Read a properties file; raises CommandError.

    The file is UTF-8 or else Latin-1, which Java reads and which decodes any bytes.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", USAGE) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    try:
        return parse_properties(text)
    except MalformedProperties as error:
        raise CommandError(f"{path}: {error}", USAGE) from None
