"""The ``kafka`` fixture, in a pytest of its own."""

from __future__ import annotations

import pytest

from tests.checkout import ROOT, SOURCES

pytest_plugins = ["pytester"]

INI = """[pytest]
addopts = -p no:barnabas -p barnabas.broker.testing.pytest_plugin
asyncio_default_fixture_loop_scope = function
"""

TWO_TESTS = """
from barnabas.broker.client.wire_client import WireClient
from tests.real.test_testing import produce

def test_orders(kafka):
    topic = kafka.create_topic("orders", partitions=1)
    assert topic == kafka.topic("orders") != "orders"
    with WireClient(kafka.broker.address) as client:
        assert produce(client, topic, b"a") == 0
    assert [record.value for record in kafka.records("orders")] == [b"a"]
    assert kafka.bootstrap_servers == kafka.broker.bootstrap_servers

def test_orders_again(kafka, kafka_broker):
    assert kafka.broker is kafka_broker
    kafka.create_topic("orders")
    assert kafka.records("orders") == []
"""

PARTITIONS = """
def test_partitions(kafka_broker):
    print("partitions", kafka_broker.server.config.num_partitions)
    print("directory", kafka_broker.server.config.data_directory)
"""


@pytest.fixture
def outside(pytester, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.syspath_prepend(str(SOURCES))
    pytester.makeini(INI)
    return pytester


def run(outside, *arguments):
    return outside.runpytest_inprocess("-p", "no:cacheprovider", "-s", *arguments)


def test_tests_share_a_broker_and_no_topics(outside):
    outside.makepyfile(TWO_TESTS)
    run(outside).assert_outcomes(passed=2)


def test_settings_come_from_fixture_then_flag_then_ini(outside):
    outside.makeini(
        INI + "kafka_config =\n    num.partitions=3\n    log.retention.hours = 1\n"
        f"kafka_storage = {outside.path / 'ini'}\n"
    )
    outside.makepyfile(PARTITIONS)
    result = run(outside)
    result.stdout.fnmatch_lines(["*partitions 3", f"directory {outside.path / 'ini'}"])
    flags = ["--kafka-config", "num.partitions=5", "--kafka-storage", str(outside.path / "flag")]
    result = run(outside, *flags)
    result.stdout.fnmatch_lines(["*partitions 5", f"directory {outside.path / 'flag'}"])
    outside.makeconftest(
        "import pytest\n"
        "@pytest.fixture(scope='session')\n"
        "def kafka_config():\n    return {'num.partitions': '7'}\n"
    )
    run(outside, *flags).stdout.fnmatch_lines(["*partitions 7"])


def test_a_setting_without_a_value_is_said_so(outside):
    outside.makepyfile(PARTITIONS)
    result = run(outside, "--kafka-config", "num.partitions")
    result.stdout.fnmatch_lines(["*kafka_config: num.partitions is not KEY=VALUE*"])


def test_a_setting_that_there_is_not_is_said_so(outside):
    outside.makepyfile(PARTITIONS)
    result = run(outside, "--kafka-config", "num.partitons=5")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*unknown key num.partitons, did you mean num.partitions?*"])


def test_the_seed_is_shown_with_a_failure(outside):
    outside.makepyfile("def test_fails(kafka):\n    assert kafka.broker.seed < 0\n")
    run(outside).stdout.fnmatch_lines(["*kafka*", "broker seed *"])


def test_users_come_from_a_fixture(outside):
    outside.makeconftest(
        "import pytest\n"
        "from barnabas.testing import Security\n"
        "@pytest.fixture(scope='session')\n"
        "def kafka_security():\n    return Security(users=['alice'])\n"
    )
    outside.makepyfile(
        "def test_users(kafka):\n"
        "    assert kafka.create_topic('orders')\n"
        "    assert kafka.records('orders') == []\n"
        "    config = kafka.client_config('alice', 'java')\n"
        "    assert config['security.protocol'] == 'SASL_SSL'\n"
    )
    run(outside).assert_outcomes(passed=1)
