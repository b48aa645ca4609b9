"""Settings of groups, levels of loggers, and the list of what has settings, as Kafka 4.3.0 does."""

import logging

import pytest

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.types import ConfigSource, Setting
from barnabas.broker.metadata import configs as configs_module
from barnabas.broker.metadata.resources import ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_config_resources import (
    LIST_CONFIG_RESOURCES,
    ListConfigResourcesRequest,
)
from tests.broker.handlers.test_configs import (
    APPEND,
    BROKER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    LOGGER,
    NONE,
    SET,
    SUBTRACT,
    TOPIC,
    change,
    describe,
    described,
    replace,
)
from tests.broker.harness import Administration

SESSION = "consumer.session.timeout.ms"
HEARTBEAT = "consumer.heartbeat.interval.ms"
STATIC = ConfigSource.STATIC_BROKER
STANDBY_REPLICAS_LIMIT = (
    "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas"
)
NO_LEVEL = (
    "Cannot set the log level of root to loud as it is not a supported log level. "
    "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
)


class TestGroups:
    async def test_set_and_delete(self, administration):
        assert await change(administration, GROUP, "g", (SESSION, SET, "50000")) == (NONE, None)
        config = await described(administration, GROUP, "g", SESSION)
        assert (config.value, config.config_source) == ("50000", 8)
        assert [(each.name, each.source) for each in config.synonyms] == [
            (SESSION, 8),
            ("group.consumer.session.timeout.ms", 5),
        ]
        assert administration.catalogue.configs.group_value("g", SESSION) == 50_000
        assert administration.catalogue.configs.group_value("other", SESSION) == 45_000
        assert await change(administration, GROUP, "g", (SESSION, DELETE, None)) == (NONE, None)
        assert administration.catalogue.configs.group_overrides == {}
        assert administration.metastore.load().group_configs == {}

    async def test_replacing(self, administration):
        await change(administration, GROUP, "g", (SESSION, SET, "50000"))
        outcome = await replace(administration, GROUP, "g", (HEARTBEAT, "6000"))
        assert outcome == (NONE, None)
        assert administration.catalogue.configs.group_overrides == {"g": {HEARTBEAT: "6000"}}

    async def test_group_configs_survive_a_restart(self):
        first = Administration()
        await change(first, GROUP, "g", (SESSION, SET, "50000"))
        first.stop()
        second = Administration(first.file_system, first.metastore)
        assert second.catalogue.configs.group_value("g", SESSION) == 50_000
        second.stop()

    @pytest.mark.parametrize(
        ("config", "code", "message"),
        [
            (("nope", SET, "1"), 40, "Unknown group config name: nope"),
            (
                (SESSION, SET, "1"),
                40,
                f"{SESSION} must be greater than or equal to group.consumer.min.session.timeout.ms",
            ),
            (
                (SESSION, SET, "70000"),
                40,
                f"{SESSION} must be less than or equal to group.consumer.max.session.timeout.ms",
            ),
            (
                (SESSION, SET, "x"),
                40,
                f"Invalid value x for configuration {SESSION}: Not a number of type INT",
            ),
            (
                ("streams.num.standby.replicas", SET, "3"),
                40,
                STANDBY_REPLICAS_LIMIT,
            ),
            (("share.auto.offset.reset", SET, "by_duration:P"), 40, None),
            (("share.auto.offset.reset", SET, "by_duration:PT"), 40, None),
            (("share.auto.offset.reset", SET, "sometimes"), 40, None),
            (("share.renew.acknowledge.enable", SET, "yes"), 40, None),
            ((SESSION, SET, None), 42, f"Null value not supported for : {SESSION}"),
            (
                (SESSION, APPEND, "1"),
                40,
                f"Can't APPEND to key {SESSION} because its type is not LIST.",
            ),
        ],
    )
    async def test_refusals_change_nothing(self, administration, config, code, message):
        outcome = await change(administration, GROUP, "g", (HEARTBEAT, SET, "6000"), config)
        assert outcome[0] == code
        assert message is None or outcome[1] == message
        assert administration.metastore.load().group_configs == {}

    @pytest.mark.parametrize(
        "reset",
        ["earliest", "latest", "by_duration:P1D", "by_duration:PT1H30M", "by_duration:PT0.5S"],
    )
    async def test_where_a_share_group_begins(self, administration, reset):
        outcome = await change(administration, GROUP, "g", ("share.auto.offset.reset", SET, reset))
        assert outcome == (NONE, None)

    async def test_a_heartbeat_is_shorter_than_a_session(self):
        wide = {
            "group.consumer.max.heartbeat.interval.ms": (Setting("60000", STATIC, "x"),),
        }
        config = BrokerConfig(node_id=1).with_settings(wide)
        administration = Administration(config=config)
        outcome = await change(administration, GROUP, "g", (HEARTBEAT, SET, "45000"))
        assert outcome == (ErrorCode.INVALID_CONFIG, f"{HEARTBEAT} must be less than {SESSION}")
        both = ((HEARTBEAT, SET, "45000"), (SESSION, SET, "45001"))
        assert await change(administration, GROUP, "g", *both) == (NONE, None)
        administration.stop()

    async def test_the_coordinator_keeps_to_limits_that_were_moved(self):
        first = Administration()
        await change(first, GROUP, "g", (SESSION, SET, "50000"), (HEARTBEAT, SET, "14000"))
        first.stop()
        narrow = {
            "group.consumer.min.session.timeout.ms": (Setting("55000", STATIC, "x"),),
            "group.consumer.max.heartbeat.interval.ms": (Setting("9000", STATIC, "x"),),
        }
        config = BrokerConfig(node_id=1).with_settings(narrow)
        second = Administration(first.file_system, first.metastore, config)
        assert second.catalogue.configs.group_value("g", SESSION) == 55_000
        assert second.catalogue.configs.group_value("g", HEARTBEAT) == 9_000
        assert (await described(second, GROUP, "g", SESSION)).value == "50000"
        second.stop()

    async def test_only_so_many_groups_can_have_settings(self, administration, monkeypatch):
        monkeypatch.setattr(configs_module, "GROUPS_WITH_SETTINGS_MAX", 2)
        for group in ("a", "b"):
            assert await change(administration, GROUP, group, (HEARTBEAT, SET, "6000")) == (0, None)
        code, message = await change(administration, GROUP, "c", (HEARTBEAT, SET, "6000"))
        assert code == ErrorCode.POLICY_VIOLATION
        assert "No more than 2 groups" in message
        assert await change(administration, GROUP, "a", (HEARTBEAT, SET, "7000")) == (0, None)
        assert await change(administration, GROUP, "c", (HEARTBEAT, DELETE, None)) == (0, None)

    async def test_validate_only(self, administration):
        asked = (SESSION, SET, "50000")
        assert await change(administration, GROUP, "g", asked, validate_only=True) == (0, None)
        assert administration.metastore.load().group_configs == {}


@pytest.fixture
def logger():
    found = logging.getLogger("broker.of_this_test")
    found.setLevel(logging.NOTSET)
    yield found
    found.setLevel(logging.NOTSET)


class TestLoggers:
    async def test_all_have_a_level(self, administration, logger):
        (result,) = await describe(administration, (LOGGER, "1", None), documentation=True)
        found = {config.name: config for config in result.configs}
        assert {"root", "barnabas.broker.metadata.catalogue", logger.name} <= set(found)
        config = found["root"]
        assert (config.config_source, config.config_type, config.documentation) == (6, 0, None)
        assert (config.read_only, config.synonyms) == (False, [])
        assert {config.value for config in result.configs} <= {
            *("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
        }

    @pytest.mark.parametrize(
        ("level", "number"),
        [("TRACE", 5), ("DEBUG", 10), ("INFO", 20), ("WARN", 30), ("ERROR", 40), ("FATAL", 50)],
    )
    async def test_set_and_delete(self, administration, logger, level, number):
        inherited = (await described(administration, LOGGER, "1", logger.name)).value
        outcome = await change(administration, LOGGER, "1", (logger.name, SET, level))
        assert outcome == (NONE, None)
        assert logger.level == number
        assert (await described(administration, LOGGER, "1", logger.name)).value == level
        outcome = await change(administration, LOGGER, "1", (logger.name, DELETE, None))
        assert outcome == (NONE, None)
        assert logger.level == logging.NOTSET
        assert (await described(administration, LOGGER, "1", logger.name)).value == inherited

    @pytest.mark.parametrize("level", [25, 60])
    async def test_a_level_between_kafkas(self, administration, logger, level):
        logger.setLevel(level)
        expected = {25: "WARN", 60: "FATAL"}[level]
        assert (await described(administration, LOGGER, "1", logger.name)).value == expected

    @pytest.mark.parametrize(
        ("name", "config", "code", "message"),
        [
            ("1", ("no.such", SET, "INFO"), 40, "Logger no.such does not exist!"),
            ("1", ("no.such", DELETE, None), 40, "Logger no.such does not exist!"),
            (
                "1",
                ("root", SET, "loud"),
                40,
                NO_LEVEL,
            ),
            ("1", ("root", SET, None), 42, "Null value not supported for : root"),
            (
                "1",
                ("root", DELETE, None),
                42,
                "Removing the log level of the root logger is not allowed",
            ),
            (
                "1",
                ("root", APPEND, "INFO"),
                42,
                "APPEND operation is not allowed for the BROKER_LOGGER resource",
            ),
            ("1", ("root", SUBTRACT, "INFO"), 42, None),
            ("1", ("root", 9, "INFO"), 42, "Unknown operation 9 for root"),
            ("x", ("root", SET, "INFO"), 42, "Node id must be an integer, but it is: x"),
            ("", ("root", SET, "INFO"), 42, "Node id must be an integer, but it is: "),
        ],
    )
    async def test_refusals_change_nothing(
        self, administration, logger, name, config, code, message
    ):
        outcome = await change(administration, LOGGER, name, (logger.name, SET, "INFO"), config)
        assert outcome[0] == code
        assert message is None or outcome[1] == message
        assert logger.level == logging.NOTSET

    async def test_validate_only(self, administration, logger):
        asked = (logger.name, SET, "INFO")
        assert await change(administration, LOGGER, "1", asked, validate_only=True) == (0, None)
        assert logger.level == logging.NOTSET

    async def test_logger_configs_cannot_be_replaced(self, administration, logger):
        outcome = await replace(administration, LOGGER, "1", (logger.name, "INFO"))
        assert outcome == (ErrorCode.INVALID_REQUEST, "Unknown resource type 8")


class TestListConfigResources:
    @pytest.fixture
    async def administration(self, administration):
        await administration.catalogue.create_topic("a", 1, {})
        await change(administration, GROUP, "g", (SESSION, SET, "50000"))
        return administration

    async def listed(self, administration, *types, version=1):
        request = ListConfigResourcesRequest(list(types))
        response = await administration.ask(LIST_CONFIG_RESOURCES, request, version)
        found = [(each.resource_type, each.resource_name) for each in response.config_resources]
        return response.error_code, found

    async def test_everything(self, administration):
        everything = [(TOPIC, "a"), (BROKER, "1"), (LOGGER, "1"), (GROUP, "g")]
        assert await self.listed(administration) == (NONE, everything)
        assert await self.listed(administration, *ResourceType) == (NONE, everything)

    async def test_some(self, administration):
        assert await self.listed(administration, GROUP, TOPIC) == (NONE, [(2, "a"), (32, "g")])
        assert await self.listed(administration, CLIENT_METRICS) == (NONE, [])

    async def test_client_metrics_only(self, administration):
        assert await self.listed(administration, version=0) == (NONE, [])
