"""The table of broker keys, and the configuration object itself."""

from dataclasses import FrozenInstanceError, fields, replace

import pytest

from barnabas.broker.config.broker_config import (
    BROKER_CONFIGS,
    FIELD_NAMES,
    READ_ONLY,
    BrokerConfig,
)
from barnabas.broker.config.types import (
    INT_MAX,
    LONG_MAX,
    ConfigError,
    ConfigSource,
    ConfigType,
    ConflictingValues,
    Setting,
    format_value,
)

STATIC = ConfigSource.STATIC_BROKER


def test_field_names_follow_from_the_keys():
    for key, name in FIELD_NAMES.items():
        assert name == key.removeprefix("barnabas.").replace(".", "_")


def test_every_field_is_a_key_or_the_record_of_who_set_what():
    names = {each.name for each in fields(BrokerConfig)}
    assert names - set(FIELD_NAMES.values()) == {"settings"}


def test_defaults_have_their_type_and_are_accepted():
    config = BrokerConfig()
    for name, key in BROKER_CONFIGS.items():
        assert config.value(name) == key.default, name
        if key.default is not None:
            assert key.parse(format_value(key.default)) == key.default, name


def test_every_key_is_documented_in_a_sentence():
    docs = {name: key.doc for name, key in BROKER_CONFIGS.items()}
    wrong = {name for name, doc in docs.items() if not (doc[0].isupper() and doc.endswith("."))}
    assert wrong == set()


def test_the_configuration_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        BrokerConfig().node_id = 2


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("node.id", "-1", "Value must be at least 0"),
        ("node.id", "one", "Not a number of type INT"),
        ("node.id", "1_000", "Not a number of type INT"),
        ("node.id", "", "Not a number of type INT"),
        ("node.id", str(INT_MAX + 1), "Not a number of type INT"),
        ("node.id", "1" * 101, "Not a number of type INT"),
        ("log.retention.bytes", str(LONG_MAX + 1), "Not a number of type LONG"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "Value must be no more than 1"),
        ("log.cleaner.min.cleanable.ratio", "nan", "Not a number of type DOUBLE"),
        ("auto.create.topics.enable", "yes", "Expected value to be either true or false"),
        ("log.cleanup.policy", "keep", "String must be one of: compact, delete"),
        ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        ("authorizer.class.name", "Acl", "Value must be empty or org.apache.kafka.metadata"),
        ("barnabas.create.topics", "a:0:1", "Value must be name:partitions:replication"),
        ("barnabas.create.topics", "a:1", "Value must be name:partitions:replication"),
    ],
)
def test_bad_values_name_the_key_the_value_and_what_is_accepted(key, text, expected):
    with pytest.raises(ConfigError) as caught:
        BROKER_CONFIGS[key].parse(text)
    assert (caught.value.key, caught.value.value) == (key, text)
    assert str(caught.value).startswith(f"Invalid value {text} for configuration {key}: {expected}")


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("node.id", " 7 ", 7),
        ("node.id", "+7", 7),
        ("auto.create.topics.enable", "FALSE", False),
        ("log.cleanup.policy", " compact , delete", ("compact", "delete")),
        ("log.cleanup.policy", "", ()),
        ("log.cleaner.min.cleanable.ratio", "1e-1", 0.1),
        ("barnabas.create.topics", "a:1:1, b:3:1:compact", ("a:1:1", "b:3:1:compact")),
    ],
)
def test_values_are_parsed_as_kafka_parses_them(key, text, value):
    assert BROKER_CONFIGS[key].parse(text) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (5, "5"),
        (0.5, "0.5"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (("a", "b"), "a,b"),
        ((), ""),
        ("x", "x"),
    ],
)
def test_values_are_shown_as_kafka_shows_them(value, text):
    assert format_value(value) == text


def entry(config, name):
    return next(each for each in config.describe() if each.name == name)


def test_describe_names_the_source_and_the_default():
    plain = entry(BrokerConfig(), "log.segment.bytes")
    assert (plain.value, plain.type, plain.source) == (
        "1073741824",
        ConfigType.INT,
        ConfigSource.DEFAULT,
    )
    assert not plain.read_only
    assert [each.value for each in plain.synonyms] == ["1073741824"]
    config = BrokerConfig().with_settings(
        {"log.segment.bytes": (Setting("2097152", STATIC, "--override"),)}
    )
    changed = entry(config, "log.segment.bytes")
    assert (changed.value, changed.source) == ("2097152", STATIC)
    assert [(each.value, each.source) for each in changed.synonyms] == [
        ("2097152", STATIC),
        ("1073741824", ConfigSource.DEFAULT),
    ]


def test_dynamic_settings_lie_over_static_ones():
    loaded = BrokerConfig().with_settings({"message.max.bytes": (Setting("10", STATIC, "x"),)})
    cluster = loaded.with_dynamic({"message.max.bytes": "20"})
    assert cluster.message_max_bytes == 20
    broker = loaded.with_dynamic({"message.max.bytes": "20"}, {"message.max.bytes": "30"})
    assert broker.message_max_bytes == 30
    assert [each.source for each in entry(broker, "message.max.bytes").synonyms] == [
        ConfigSource.DYNAMIC_BROKER,
        ConfigSource.DYNAMIC_DEFAULT_BROKER,
        ConfigSource.STATIC_BROKER,
        ConfigSource.DEFAULT,
    ]
    assert loaded.message_max_bytes == 10


@pytest.mark.parametrize("name", ["no.such.key", "num.partitions"])
def test_static_config_cannot_change_at_runtime(name):
    with pytest.raises(ConflictingValues, match="Cannot update these configs dynamically"):
        BrokerConfig().with_dynamic({name: "1"})


def test_dynamic_values_are_checked():
    with pytest.raises(ConfigError, match="Value must be at least 1048576"):
        BrokerConfig().with_dynamic({"log.segment.bytes": "1"})


def test_read_only_keys_say_so():
    for each in BrokerConfig().describe():
        assert each.read_only == (BROKER_CONFIGS[each.name].update is READ_ONLY)


def test_one_data_directory():
    assert BrokerConfig().data_directory == "./data"
    assert BrokerConfig(log_dir=("/a",)).data_directory == "/a"
    assert BrokerConfig(log_dir=("/a",), log_dirs=("/b",)).data_directory == "/b"
    with pytest.raises(ConfigError, match="Several data directories are not supported"):
        _ = BrokerConfig(log_dirs=("/a", "/b")).data_directory
    with pytest.raises(ConfigError, match="One data directory is needed"):
        _ = BrokerConfig(log_dir=()).data_directory


def test_replace_works_for_tests():
    config = replace(BrokerConfig(), node_id=3)
    assert config.node_id == 3
    assert config != BrokerConfig()
