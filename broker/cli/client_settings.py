"""Settings of Kafka's clients for commands: a file, and single ones from the command line.

The file is, in this order, ``--command-config FILE``, that of the profile whose server is used, or
BARNABAS_COMMAND_CONFIG; ``--command-property`` takes precedence over each of them. Secrets are not
accepted on the command line, which every user of the machine can read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.cli.errors import USAGE, CommandError

if TYPE_CHECKING:
    from barnabas.broker.client.security import ClientSecurity

FILE_VARIABLE: Final = "BARNABAS_COMMAND_CONFIG"


def client_security(
    path: str | None, properties: Iterable[tuple[str, str]], environment: Mapping[str, str]
) -> ClientSecurity | None:
    """Return the security settings, or None if there are none; raises CommandError."""
    path = path or environment.get(FILE_VARIABLE) or None
    given = dict(properties)
    if path is None and not given:
        return None
    # Imported only if there are settings: most commands for a plain broker have none.
    from barnabas.broker.cli.properties_file import read_properties
    from barnabas.broker.client.errors import WrongSetting
    from barnabas.broker.client.security import security_of
    from barnabas.broker.client.security_keys import SECRETS

    for key in given:
        if key in SECRETS:
            raise CommandError(
                f"{key} is secret, and others can read the command line: put it into the file of "
                "--command-config",
                USAGE,
            )
    settings = {each.key: each.value for each in read_properties(path)} if path else {}
    try:
        return security_of(settings | given, environment)
    except WrongSetting as error:
        where = f"{path}: " if path and error.key not in given else ""
        raise CommandError(f"{where}{error}", USAGE) from None
