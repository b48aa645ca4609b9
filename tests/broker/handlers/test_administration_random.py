"""Random administration requests in each version: no handler fails."""

from __future__ import annotations

import logging

import pytest

from barnabas.broker.api.dispatch import ROUTES
from barnabas.protocol.errors import KafkaError
from tests.broker.harness import Administration
from tests.protocol.random_messages import Case, RandomMessages, all_cases

MESSAGES = 1500

APIS = {
    "alter_client_quotas",
    "alter_configs",
    "alter_partition_reassignments",
    "alter_user_scram_credentials",
    "create_acls",
    "create_partitions",
    "create_topics",
    "delete_acls",
    "delete_records",
    "delete_topics",
    "describe_acls",
    "describe_client_quotas",
    "describe_cluster",
    "describe_configs",
    "describe_log_dirs",
    "describe_producers",
    "describe_topic_partitions",
    "describe_user_scram_credentials",
    "elect_leaders",
    "incremental_alter_configs",
    "list_config_resources",
    "list_partition_reassignments",
}

# Without topics in the request, the response has no place for an error.
CAN_ONLY_HANG_UP = {"describe_topic_partitions"}

WORDS = (
    *("", "a", "b", "missing", "1", "-1", "x", "root", "barnabas.broker.metadata.catalogue"),
    *("user", "client-id", "ip", "producer_byte_rate"),
    *("retention.ms", "cleanup.policy", "compact", "delete", "100000", "INFO", "log.retention.ms"),
    *("num.io.threads", "share.auto.offset.reset", "earliest", "consumer.session.timeout.ms"),
    *("50000", "internal.segment.bytes", "1.5", "true"),
)
NUMBERS = (0, 1, 2, 3, 4, 8, 16, 32, -1)


class MeaningfulMessages(RandomMessages):
    """Mostly with words and small numbers that mean something."""

    def _string(self, name: str) -> str:
        return self.random.choice(WORDS) if self.random.random() < 0.9 else super()._string(name)

    def _int8(self, name: str) -> int:
        often = self.random.random() < 0.9
        return self.random.choice(NUMBERS) if often else super()._int8(name)

    def _int32(self, name: str) -> int:
        often = self.random.random() < 0.8
        return self.random.choice(NUMBERS) if often else super()._int32(name)


def served_cases() -> list[Case]:
    found = []
    for case in all_cases():
        if case.section == "request" and case.module in APIS:
            route = next(route for route in ROUTES if route.api.request is case.message)
            if route.min_version <= case.version <= route.max_version:
                found.append(case)
    return found


@pytest.fixture
async def administration():
    levels = {
        name: logging.getLogger(name).level for name in (None, "barnabas.broker.metadata.catalogue")
    }
    administration = Administration()
    await administration.catalogue.create_topic("a", 2, {})
    await administration.catalogue.create_topic("b", 1, {"cleanup.policy": "compact"})
    yield administration
    administration.stop()
    assert administration.fatal == []
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.parametrize("seed", range(3))
async def test_every_request_is_answered(administration, seed):
    messages = MeaningfulMessages(seed)
    cases = served_cases()
    assert {case.module for case in cases} == APIS
    for _ in range(MESSAGES):
        case = messages.random.choice(cases)
        request = messages.message(case)
        route = next(route for route in ROUTES if route.api.request is case.message)
        try:
            await administration.ask(route.api, request, case.version)
        except KafkaError:
            assert case.module in CAN_ONLY_HANG_UP
        except Exception as error:
            raise AssertionError(f"seed {seed}, {case}: {request}") from error
        administration.logs.journal.flush()
