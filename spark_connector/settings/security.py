"""Options of Spark that are Kafka's client settings for TLS and SASL.

``kafka.security.*``, ``kafka.sasl.*``, ``kafka.ssl.*`` and ``kafka.config.providers*``, as Spark's
own source has them. The parsed settings have no secret in their ``repr``, but they do when pickled
for tasks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.spark_connector.errors import WrongOption

if TYPE_CHECKING:
    from barnabas.broker.client.security import ClientSecurity

KAFKA: Final = "kafka."
OF_SOURCE: Final = "source.kafka."
"""Prefix of a sink's options for the source's brokers."""
SECRETS_OF_SPARK: Final = (
    r"(?i)secret|password|token|passphrase|access[.]?key|jaas|ssl[.]keystore[.]key|key[.]pem"
)
"""Options whose values Spark hides: its own default, and Kafka's settings that this misses."""

_GROUPS: Final = ("security.", "sasl.", "ssl.", "config.providers")


def is_about_security(name: str, prefix: str = KAFKA) -> bool:
    """Return whether an option, in lower case, is one of these."""
    return name.startswith(prefix) and name.removeprefix(prefix).startswith(_GROUPS)


def security_of_options(
    options: Mapping[str, object], prefix: str = KAFKA
) -> ClientSecurity | None:
    """Return the security settings of options, or `None` without any; raises WrongOption."""
    given = {name.lower(): str(value) for name, value in options.items()}
    settings = {
        name.removeprefix(prefix): value
        for name, value in given.items()
        if is_about_security(name, prefix)
    }
    if not settings:
        return None
    # Imported here, since each of Spark's workers would import it at the top.
    from barnabas.broker.client.errors import WrongSetting
    from barnabas.broker.client.security import security_of
    from barnabas.broker.client.security_keys import LIBRDKAFKA

    for key in settings:
        if key in LIBRDKAFKA:
            raise WrongOption(
                f"The option {prefix}{key} is librdkafka's, which Spark's own clients do not know;"
                f" use {prefix}{LIBRDKAFKA[key]}."
            )
    try:
        return security_of(settings, os.environ)
    except WrongSetting as error:
        raise WrongOption(f"The option {prefix}{error.key}: {error.reason}.") from None
