"""Constructors of the fields of BrokerConfig: each field carries its key as metadata."""

from __future__ import annotations

from dataclasses import Field, field, replace
from typing import Any, Final

from barnabas.broker.config.attribute_docs import attribute_docs
from barnabas.broker.config.topic_configs import TOPIC_CONFIGS
from barnabas.broker.config.types import (
    ConfigKey,
    ConfigType,
    UpdateMode,
    Validator,
    Value,
)

_SAME: Final = object()


def setting(
    name: str,
    kind: ConfigType,
    default: Value,
    validator: Validator | None = None,
    *,
    update: UpdateMode = UpdateMode.READ_ONLY,
    synonyms: tuple[str, ...] = (),
    documented: str = "",
) -> Any:  # noqa: ANN401 - what dataclasses.field returns
    """Make a field of BrokerConfig for one key, which the docstring below the field describes."""
    key = ConfigKey(name, kind, default, documented, validator, synonyms, update)
    is_secret = kind is ConfigType.PASSWORD
    return field(default=default, repr=not is_secret, metadata={"key": key})


def topic_default(
    name: str,
    *,
    of: str,
    kind: ConfigType | None = None,
    default: object = _SAME,
    update: UpdateMode = UpdateMode.CLUSTER_WIDE,
) -> Any:  # noqa: ANN401 - what dataclasses.field returns
    """Make a field for a key that is the default of the topic key ``of``, with the same rules."""
    topic_key = TOPIC_CONFIGS[of]
    value: Any = topic_key.default if default is _SAME else default
    unit = f", in {name.rpartition('.')[2]}" if name.endswith((".hours", ".minutes")) else ""
    doc = f"Default of {of}{unit}."
    validator = topic_key.validator
    return setting(name, kind or topic_key.type, value, validator, update=update, documented=doc)


def key_of(config: type, field: Field[Any]) -> ConfigKey:
    """Return the key of a field of a configuration; the docstring below the field describes it."""
    key: ConfigKey = field.metadata["key"]
    if key.documented:
        return key
    # The source is read when the text is needed.
    return replace(key, documented=lambda _: attribute_docs(config)[field.name])
