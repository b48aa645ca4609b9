"""DescribeConfigs, IncrementalAlterConfigs and AlterConfigs, as measured on Apache Kafka 4.3.0.

Groups and loggers are in test_group_and_logger_configs.py. tests/interop/test_like_kafka.py
compares the settings in each version, and each operation, with Apache Kafka's.
"""

import pytest

from barnabas.broker.config.broker_config import BROKER_CONFIGS, BrokerConfig
from barnabas.broker.config.ignored import IGNORED_CONFIGS
from barnabas.broker.config.types import ConfigSource, Setting
from barnabas.broker.handlers import configs as configs_module
from barnabas.broker.handlers.alter_configs import ConfigOperation
from barnabas.broker.metadata.resources import ResourceType
from barnabas.broker.metadata.topic_names import COORDINATED, GROUP_OFFSETS
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_configs import (
    ALTER_CONFIGS,
    AlterConfigsRequest,
)
from barnabas.protocol.messages.alter_configs import AlterableConfig as LegacyConfig
from barnabas.protocol.messages.alter_configs import AlterConfigsResource as LegacyResource
from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.harness import Administration

NONE = ErrorCode.NONE
TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = ResourceType
SET, DELETE, APPEND, SUBTRACT = ConfigOperation
COMPACTED = {"cleanup.policy": "compact"}
MUST_BE_COMPACTED = (
    "cleanup.policy of the internal topic {} must be compact: "
    "its coordinators need the latest record of each key."
)
BAD_POLICY = (
    "Invalid value compact,foo for configuration cleanup.policy: "
    "String must be one of: compact, delete"
)


async def describe(administration, *resources, version=4, synonyms=False, documentation=False):
    request = DescribeConfigsRequest(
        [DescribeConfigsResource(*resource) for resource in resources], synonyms, documentation
    )
    return (await administration.ask(DESCRIBE_CONFIGS, request, version)).results


async def described(administration, kind, name, key):
    (result,) = await describe(administration, (kind, name, [key]), synonyms=True)
    (config,) = result.configs
    return config


async def change(administration, kind, name, *configs, version=1, validate_only=False):
    resource = AlterConfigsResource(
        kind, name, [AlterableConfig(key, operation, text) for key, operation, text in configs]
    )
    request = IncrementalAlterConfigsRequest([resource], validate_only)
    response = await administration.ask(INCREMENTAL_ALTER_CONFIGS, request, version)
    (result,) = response.responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    return ErrorCode(result.error_code), result.error_message


async def replace(administration, kind, name, *configs, version=2, validate_only=False):
    resource = LegacyResource(kind, name, [LegacyConfig(*config) for config in configs])
    request = AlterConfigsRequest([resource], validate_only)
    (result,) = (await administration.ask(ALTER_CONFIGS, request, version)).responses
    return ErrorCode(result.error_code), result.error_message


@pytest.fixture
async def administration(administration):
    configs = {"retention.ms": "60000", "cleanup.policy": "compact"}
    await administration.catalogue.create_topic("a", 2, configs)
    await administration.catalogue.create_topic("b", 1, {})
    return administration


class TestDescribeTopics:
    @pytest.mark.parametrize("keys", [None, []])
    async def test_all_keys(self, administration, keys):
        (result,) = await describe(administration, (TOPIC, "b", keys))
        assert len(result.configs) == 34
        assert all(config.synonyms == [] for config in result.configs)
        assert all(config.documentation is None for config in result.configs)

    async def test_missing_and_illegal_topics(self, administration):
        results = await describe(
            administration, (TOPIC, "nope", None), (TOPIC, "b d", None), (TOPIC, "a", ["flush.ms"])
        )
        assert [result.error_code for result in results] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            NONE,
        ]
        assert results[0].configs == results[1].configs == []

    async def test_one_topic_in_two_resources(self, administration):
        results = await describe(
            administration, (TOPIC, "a", ["retention.ms"]), (TOPIC, "a", ["segment.ms"])
        )
        assert [[c.name for c in result.configs] for result in results] == [
            ["retention.ms"],
            ["segment.ms"],
        ]

    async def test_an_answer_has_an_end(self, administration, monkeypatch):
        monkeypatch.setattr(configs_module, "SETTINGS_PER_ANSWER_MAX", 35)
        results = await describe(administration, *[(TOPIC, "a", None)] * 4)
        assert [result.error_code for result in results] == [0, 0, 42, 42]
        assert [len(result.configs) for result in results] == [34, 34, 0, 0]
        assert "have more than 35 settings" in results[2].error_message

    async def test_resources_without_settings_of_their_own_are_described_alike(
        self, administration
    ):
        await administration.catalogue.create_topic("plain", 1, {})
        plain, own, again = await describe(
            administration, (TOPIC, "plain", None), (TOPIC, "a", None), (TOPIC, "plain", None)
        )
        assert plain.configs == again.configs
        assert {each.name for each in plain.configs} == {each.name for each in own.configs}


class TestDescribeBrokers:
    async def test_broker_describes_all_its_configs(self, administration):
        (result,) = await describe(administration, (BROKER, "1", None), synonyms=True)
        found = {config.name: config for config in result.configs}
        assert set(found) == {*BROKER_CONFIGS, *IGNORED_CONFIGS, "broker.id"}
        assert [config.name for config in result.configs] == sorted(found)
        assert (found["node.id"].value, found["node.id"].read_only) == ("1", True)
        assert not found["log.retention.ms"].read_only
        assert found["message.max.bytes"].value == "1048588"

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("2", "Unexpected broker id, expected 1 or empty string, but received 2"),
            ("x", "Node id must be an integer, but it is: x"),
            ("--1", "Node id must be an integer, but it is: --1"),
            ("1" * 5000, f"Node id must be an integer, but it is: {'1' * 5000}"),
            ("-1", "Unexpected broker id, expected 1 or empty string, but received -1"),
        ],
        ids=["another", "letters", "two signs", "endless", "negative"],
    )
    async def test_other_brokers(self, administration, name, message):
        (result,) = await describe(administration, (BROKER, name, None))
        assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, message)

    async def test_cluster_default_applies_to_all_brokers(self, administration):
        (result,) = await describe(administration, (BROKER, "", None))
        assert (result.error_code, result.configs) == (NONE, [])
        await change(administration, BROKER, "", ("log.retention.ms", SET, "888"))
        config = await described(administration, BROKER, "", "log.retention.ms")
        assert (config.value, config.config_source) == ("888", 3)

    @pytest.mark.parametrize("kind", [77, 0, 1, 3, 64, -1])
    async def test_unknown_kinds_of_resources(self, administration, kind):
        (result,) = await describe(administration, (kind, "1", None))
        assert result.error_code == ErrorCode.INVALID_REQUEST
        assert result.error_message == f"Unknown resource type {kind}"

    @pytest.mark.parametrize("kind", [LOGGER, CLIENT_METRICS, GROUP])
    async def test_kinds_that_need_a_name(self, administration, kind):
        (result,) = await describe(administration, (kind, "", None))
        assert result.error_code == ErrorCode.INVALID_REQUEST
        assert result.error_message.endswith("must not be empty")

    async def test_a_key_without_effect_says_so(self):
        given = {
            "num.io.threads": (Setting("3", ConfigSource.STATIC_BROKER, "x"),),
            "ssl.key.password": (Setting("secret", ConfigSource.STATIC_BROKER, "x"),),
        }
        config = BrokerConfig(node_id=1).with_settings(given)
        administration = Administration(config=config)
        keys = ["num.io.threads", "num.network.threads", "ssl.key.password", "ssl.key.location"]
        (result,) = await describe(
            administration, (BROKER, "1", keys), synonyms=True, documentation=True
        )
        threads, network, password = result.configs
        assert (threads.value, threads.config_source, threads.read_only) == ("3", 4, True)
        assert [(each.value, each.source) for each in threads.synonyms] == [("3", 4), ("8", 5)]
        assert (network.value, network.config_source, network.is_sensitive) == ("3", 5, False)
        assert network.documentation.startswith("No effect. ")
        assert (password.value, password.is_sensitive, password.config_type) == (None, True, 9)
        assert [(each.value, each.source) for each in password.synonyms] == [(None, 4)]
        administration.stop()

    async def test_the_older_name_of_the_node_id(self, administration):
        config = await described(administration, BROKER, "1", "broker.id")
        assert (config.value, config.read_only) == ("1", True)


class TestIncrementalAlterConfigs:
    @pytest.mark.parametrize("version", range(2))
    async def test_set_reaches_the_logs(self, administration, version):
        outcome = await change(
            administration, TOPIC, "a", ("retention.ms", SET, "5"), version=version
        )
        assert outcome == (NONE, None)
        topic = administration.catalogue.topics["a"]
        assert all(partition.log.config.retention_ms == 5 for partition in topic.partitions)
        stored = {row.name: row.configs for row in administration.metastore.load().topics}
        assert stored["a"] == {"retention.ms": "5", "cleanup.policy": "compact"}
        assert (await described(administration, TOPIC, "a", "retention.ms")).value == "5"

    @pytest.mark.parametrize(
        ("config", "code", "message"),
        [
            (
                ("retention.ms", SET, "x"),
                40,
                "Invalid value x for configuration retention.ms: Not a number of type LONG",
            ),
            (("nope", SET, "x"), 40, "Unknown topic config name: nope"),
            (("nope", APPEND, "x"), 40, "Unknown config name: nope"),
            (("retention.ms", SET, None), 42, "Null value not supported for : retention.ms"),
            (
                ("retention.ms", APPEND, "1"),
                40,
                "Can't APPEND to key retention.ms because its type is not LIST.",
            ),
            (
                ("cleanup.policy", APPEND, "foo"),
                40,
                BAD_POLICY,
            ),
            (("retention.ms", 9, "1"), 42, "Unknown operation 9 for retention.ms"),
        ],
    )
    async def test_refusals_change_nothing(self, administration, config, code, message):
        before = administration.metastore.load()
        outcome = await change(administration, TOPIC, "a", ("segment.ms", SET, "77"), config)
        assert outcome[0] == code
        assert outcome[1] == message
        assert administration.metastore.load() == before
        assert "segment.ms" not in administration.catalogue.topics["a"].configs

    @pytest.mark.parametrize(
        ("kind", "name", "code", "message"),
        [
            (TOPIC, "nope", 3, "The topic 'nope' does not exist."),
            (TOPIC, "", 42, "Default topic resources are not allowed."),
            (TOPIC, "b d", 17, None),
            (BROKER, "2", 42, None),
            (BROKER, "x", 42, "Node id must be an integer, but it is: x"),
            (77, "a", 42, "Unknown resource type 77"),
            (CLIENT_METRICS, "m", 44, "Metrics of clients are not collected by this broker."),
            (GROUP, "", 42, "Default group resources are not allowed."),
            (LOGGER, "2", 42, None),
        ],
    )
    async def test_resources_that_cannot_be_altered(
        self, administration, kind, name, code, message
    ):
        found, text = await change(administration, kind, name, ("retention.ms", SET, "1"))
        assert found == code
        assert message is None or text == message

    async def test_topic_with_an_empty_policy_deletes_nothing(self, administration):
        await change(administration, TOPIC, "a", ("cleanup.policy", SUBTRACT, "compact"))
        assert not administration.catalogue.topics["a"].log_config.deletes

    async def test_a_key_or_a_resource_given_twice(self, administration):
        outcome = await change(
            administration, TOPIC, "a", ("retention.ms", SET, "1"), ("retention.ms", SET, "2")
        )
        assert outcome == (ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        resource = AlterConfigsResource(TOPIC, "a", [AlterableConfig("retention.ms", SET, "1")])
        request = IncrementalAlterConfigsRequest([resource, resource])
        response = await administration.ask(INCREMENTAL_ALTER_CONFIGS, request, 1)
        assert [(each.error_code, each.error_message) for each in response.responses] == [
            (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        ] * 2
        assert administration.catalogue.topics["a"].configs["retention.ms"] == "60000"

    async def test_validate_only(self, administration):
        outcome = await change(
            administration, TOPIC, "a", ("retention.ms", SET, "77"), validate_only=True
        )
        assert outcome == (NONE, None)
        assert administration.catalogue.topics["a"].configs["retention.ms"] == "60000"
        code, _ = await change(
            administration, TOPIC, "a", ("retention.ms", SET, "x"), validate_only=True
        )
        assert code == ErrorCode.INVALID_CONFIG


class TestInternalTopics:
    """Retention would delete offsets and transactions that their coordinators need."""

    @pytest.mark.parametrize("name", sorted(COORDINATED))
    @pytest.mark.parametrize(
        ("operation", "text"),
        [(SET, "delete"), (APPEND, "delete"), (SUBTRACT, "compact"), (DELETE, None)],
    )
    async def test_internal_topic_stays_compacted(self, administration, name, operation, text):
        topic = await administration.catalogue.create_topic(name, 1, COMPACTED)
        change_of_policy = ("cleanup.policy", operation, text)
        for validate_only in (True, False):
            outcome = await change(
                administration, TOPIC, name, change_of_policy, validate_only=validate_only
            )
            assert outcome == (ErrorCode.INVALID_CONFIG, MUST_BE_COMPACTED.format(name))
        assert topic.configs == COMPACTED
        outcome = await change(administration, TOPIC, name, ("segment.bytes", SET, "2097152"))
        assert outcome == (NONE, None)

    async def test_replaced_settings_of_an_internal_topic_have_its_policy(self, administration):
        topic = await administration.catalogue.create_topic(GROUP_OFFSETS, 1, COMPACTED)
        outcome = await replace(administration, TOPIC, GROUP_OFFSETS, ("segment.ms", "99"))
        assert outcome == (ErrorCode.INVALID_CONFIG, MUST_BE_COMPACTED.format(GROUP_OFFSETS))
        settings = COMPACTED | {"segment.ms": "99"}
        assert await replace(administration, TOPIC, GROUP_OFFSETS, *settings.items()) == (
            NONE,
            None,
        )
        assert topic.configs == settings

    async def test_internal_topic_is_created_compacted(self, administration):
        with pytest.raises(KafkaError, match="must be compact"):
            await administration.catalogue.create_topic(GROUP_OFFSETS, 1, {})

    async def test_stored_policy_of_an_internal_topic_has_no_effect(self):
        first = Administration()
        topic = await first.catalogue.create_topic(GROUP_OFFSETS, 1, COMPACTED)
        first.metastore.set_topic_configs(topic.topic_id, {"cleanup.policy": "delete"})
        first.stop()
        second = Administration(first.file_system, first.metastore)
        settings = second.catalogue.topics[GROUP_OFFSETS].log_config
        assert (settings.is_compacted, settings.deletes) == (True, False)
        second.stop()


class TestBrokerSettings:
    async def test_a_nodes_own_wins_over_the_clusters_over_the_file(self):
        administration = Administration(config=BrokerConfig(node_id=1))
        await administration.catalogue.create_topic("a", 1, {})
        log = administration.catalogue.topics["a"].partitions[0].log
        await change(administration, BROKER, "", ("log.retention.ms", SET, "888"))
        assert log.config.retention_ms == 888
        await change(administration, BROKER, "1", ("log.retention.ms", SET, "777"))
        assert log.config.retention_ms == 777
        config = await described(administration, TOPIC, "a", "retention.ms")
        assert (config.value, config.config_source) == ("777", 2)
        synonyms = [(each.name, each.value, each.source) for each in config.synonyms]
        assert synonyms[:2] == [("log.retention.ms", "777", 2), ("log.retention.ms", "888", 3)]
        await change(administration, BROKER, "1", ("log.retention.ms", DELETE, None))
        await change(administration, BROKER, "", ("log.retention.ms", DELETE, None))
        assert log.config.retention_ms == 604800000
        administration.stop()

    async def test_changed_configs_survive_a_restart(self):
        first = Administration()
        await change(first, BROKER, "1", ("log.retention.ms", SET, "777"))
        await first.catalogue.create_topic("a", 1, {})
        first.stop()
        second = Administration(first.file_system, first.metastore)
        assert second.catalogue.configs.broker_config.log_retention_ms == 777
        assert second.catalogue.topics["a"].partitions[0].log.config.retention_ms == 777
        second.stop()

    async def test_a_topics_own_setting_stays(self, administration):
        await change(administration, BROKER, "", ("log.retention.ms", SET, "888"))
        assert administration.catalogue.topics["a"].log_config.retention_ms == 60000

    @pytest.mark.parametrize(
        ("name", "config", "code", "message"),
        [
            (
                "1",
                ("node.id", SET, "7"),
                42,
                "Cannot update these configs dynamically: [node.id]",
            ),
            (
                "",
                ("auto.create.topics.enable", SET, "false"),
                42,
                "Cannot update these configs dynamically: [auto.create.topics.enable]",
            ),
            ("1", ("nope", SET, "7"), 40, "Broker setting nope is unknown"),
            (
                "1",
                ("num.io.threads", SET, "7"),
                42,
                "Cannot update these configs dynamically: [num.io.threads]",
            ),
            (
                "",
                ("cordoned.log.dirs", SET, "*"),
                42,
                (
                    "Cannot update these configs at default cluster level, broker id must be "
                    "specified: [cordoned.log.dirs]"
                ),
            ),
            (
                "1",
                ("cordoned.log.dirs", SET, "./data, /elsewhere"),
                42,
                (
                    "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. "
                    "Missing entries : /elsewhere"
                ),
            ),
            (
                "1",
                ("message.max.bytes", SET, "xx"),
                42,
                "Invalid value xx for configuration message.max.bytes: Not a number of type INT",
            ),
        ],
    )
    async def test_refusals(self, administration, name, config, code, message):
        assert await change(administration, BROKER, name, config) == (code, message)
        assert administration.metastore.load().broker_configs == {}

    async def test_a_default_that_does_not_fit_a_topic(self, administration):
        await change(administration, TOPIC, "a", ("max.compaction.lag.ms", SET, "10"))
        code, message = await change(
            administration, BROKER, "", ("log.cleaner.min.compaction.lag.ms", SET, "20")
        )
        assert code == ErrorCode.INVALID_REQUEST
        assert "min.compaction.lag.ms (20) > max.compaction.lag.ms (10)" in message

    async def test_validate_only(self, administration):
        outcome = await change(
            administration, BROKER, "", ("log.retention.ms", SET, "8"), validate_only=True
        )
        assert outcome == (NONE, None)
        assert administration.metastore.load().broker_configs == {}


class TestAlterConfigs:
    @pytest.mark.parametrize("version", range(3))
    async def test_replaces_everything(self, administration, version):
        outcome = await replace(
            administration, TOPIC, "a", ("segment.ms", "60000"), version=version
        )
        assert outcome == (NONE, None)
        assert administration.catalogue.topics["a"].configs == {"segment.ms": "60000"}
        log = administration.catalogue.topics["a"].partitions[0].log
        assert (log.config.segment_ms, log.config.retention_ms) == (60000, 604800000)

    async def test_refusals(self, administration):
        assert await replace(administration, TOPIC, "a", ("segment.ms", None)) == (
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : segment.ms",
        )
        assert (await replace(administration, TOPIC, "a", ("segment.ms", "x")))[0] == 40
        assert (await replace(administration, TOPIC, "nope"))[0] == 3
        assert (await replace(administration, BROKER, "1", ("node.id", "5")))[0] == 42

    async def test_broker(self, administration):
        assert await replace(administration, BROKER, "1", ("message.max.bytes", "2000000")) == (
            NONE,
            None,
        )
        assert administration.catalogue.topics["b"].log_config.max_message_bytes == 2000000

    async def test_validate_only(self, administration):
        outcome = await replace(
            administration, TOPIC, "a", ("segment.ms", "60000"), validate_only=True
        )
        assert outcome == (NONE, None)
        assert "segment.ms" not in administration.catalogue.topics["a"].configs
