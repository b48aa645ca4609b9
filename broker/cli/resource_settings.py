"""Settings of topics and brokers: as DescribeConfigs shows, IncrementalAlterConfigs sets them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.broker.cli.cluster_view import Cluster, check
from barnabas.broker.client.connection import Connection
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
SET, UNSET = 0, 1
DYNAMIC_TOPIC_CONFIG: Final = 1
DEFAULT_CONFIG: Final = 5

SETTING_COLUMNS: Final = {"CONFIGURATION": "key", "VALUE": "value", "SOURCE": "source"}


@dataclass(frozen=True)
class Setting:
    """A setting and where it comes from; the value of a secret is ``None``."""

    key: str
    value: str | None
    source: str


Settings = dict[str, list[DescribeConfigsResourceResult]]


def settings_of(target: Cluster | Connection, kind: int, names: Sequence[str]) -> Settings:
    """Return all settings of topics or brokers by their names, sorted; raises Rejected.

    Those of a broker are its own to tell.
    """
    resources = [DescribeConfigsResource(kind, name, None) for name in names]
    request = DescribeConfigsRequest(resources, False, False)
    found: Settings = {}
    for result in target.ask(DESCRIBE_CONFIGS, request).results:
        check(result.resource_name, result.error_code, result.error_message)
        found[result.resource_name] = sorted(result.configs, key=lambda each: each.name)
    return found


def setting_of(config: DescribeConfigsResourceResult) -> Setting:
    """Return a setting as operators see it."""
    source = SOURCE_WORDS.get(config.config_source, str(config.config_source))
    return Setting(config.name, None if config.is_sensitive else config.value, source)


def changes_of(given: Sequence[tuple[str, str]], unset: Sequence[str]) -> list[AlterableConfig]:
    """Return the changes that options ask for."""
    changes = [AlterableConfig(key, SET, value) for key, value in given]
    return changes + [AlterableConfig(key, UNSET, None) for key in unset]


def alter_settings(
    target: Cluster | Connection,
    kind: int,
    name: str,
    changes: list[AlterableConfig],
    *,
    dry_run: bool = False,
) -> None:
    """Change settings of one topic or broker; raises Rejected.

    Those of one broker are its own to change.
    """
    resource = AlterConfigsResource(kind, name, changes)
    request = IncrementalAlterConfigsRequest([resource], dry_run)
    (answer,) = target.ask(INCREMENTAL_ALTER_CONFIGS, request).responses
    check(name or "all brokers", answer.error_code, answer.error_message)
