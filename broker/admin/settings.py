"""Settings of topics and brokers: as DescribeConfigs shows, IncrementalAlterConfigs sets them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from barnabas.broker.admin.exchange import Exchange, Receiver, check, send
from barnabas.broker.config.types import SOURCE_WORDS
from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC: Final = 2
BROKER: Final = 4
_SET, _UNSET = 0, 1
DYNAMIC_TOPIC_CONFIG: Final = 1
DEFAULT_CONFIG: Final = 5

Change: TypeAlias = tuple[str, str | None]
"""Key and value, ``None`` for the default."""


@dataclass(frozen=True)
class Setting:
    """A setting and where it comes from; the value of a secret is ``None``."""

    key: str
    value: str | None
    source: str


def settings_of(
    kind: int, names: Sequence[str], to: Receiver = None
) -> Exchange[dict[str, list[DescribeConfigsResourceResult]]]:
    """Return all settings of topics or brokers by their names, sorted; raises Rejected.

    Those of one broker are known to it alone.
    """
    resources = [DescribeConfigsResource(kind, name, None) for name in names]
    request = DescribeConfigsRequest(resources, False, False)
    found = {}
    for result in (yield from send(DESCRIBE_CONFIGS, request, to)).results:
        check(result.resource_name, result.error_code, result.error_message)
        found[result.resource_name] = sorted(result.configs, key=lambda each: each.name)
    return found


def setting_of(config: DescribeConfigsResourceResult) -> Setting:
    """Return a setting as operators see it."""
    source = SOURCE_WORDS.get(config.config_source, str(config.config_source))
    return Setting(config.name, None if config.is_sensitive else config.value, source)


def alter_settings(
    kind: int, name: str, changes: Iterable[Change], *, dry_run: bool, to: Receiver = None
) -> Exchange[None]:
    """Change settings of one topic or broker; raises Rejected.

    A change of a broker's settings must go to that broker.
    """
    configs = [
        AlterableConfig(key, _UNSET if value is None else _SET, value) for key, value in changes
    ]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(kind, name, configs)], dry_run)
    for each in (yield from send(INCREMENTAL_ALTER_CONFIGS, request, to)).responses:
        check(name or "all brokers", each.error_code, each.error_message)
