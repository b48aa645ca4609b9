import pytest

from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.loading.properties import parse_properties
from barnabas.broker.config.types import ConfigError

DEMO_FILE = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9093
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
log.dirs=/var/lib/kafka/data
num.partitions=3
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
log.retention.hours=24
share.coordinator.state.topic.replication.factor=1
"""


def load(file="", environment=None, *overrides):
    return load_config(parse_properties(file), environment or {}, overrides)


def test_nothing_is_a_working_configuration():
    loaded = load()
    assert loaded.config.node_id == 1
    assert loaded.config.data_directory == "./data"
    assert (loaded.ignored, loaded.unknown) == ((), ())


def test_a_file_written_for_kafka_loads_in_peace():
    loaded = load(DEMO_FILE)
    config = loaded.config
    assert config.num_partitions == 3
    assert [each.name for each in config.endpoints] == ["PLAINTEXT"]
    assert config.endpoints[0].advertised == ("localhost", 9092)
    assert loaded.ignored == (
        "controller.quorum.voters",
        "num.network.threads",
        "process.roles",
        "share.coordinator.state.topic.replication.factor",
    )
    assert loaded.unknown == ()


def test_precedence_and_sources():
    environment = {"KAFKA_NUM_PARTITIONS": "4", "KAFKA_LOG_RETENTION_HOURS": "2"}
    file = "num.partitions=3\nlog.retention.hours=1\nlog.segment.bytes=2097152\n"
    config = load(file, environment, "log.retention.hours=5").config
    assert config.log_segment_bytes == 2097152
    assert config.num_partitions == 4
    assert config.log_retention_hours == 5
    origins = {key: settings[0].origin for key, settings in config.settings.items()}
    assert origins == {
        "log.segment.bytes": "server.properties line 3",
        "num.partitions": "environment KAFKA_NUM_PARTITIONS",
        "log.retention.hours": "--override",
    }


def test_a_later_line_of_the_file_wins():
    assert load("num.partitions=2\nnum.partitions=5\n").config.num_partitions == 5


def test_unknown_keys_are_listed_once_and_do_not_stop():
    loaded = load("no.such.key=1\nnum.partitons=3\n", {"KAFKA_NO_SUCH_KEY": "2"})
    assert loaded.unknown == ("no.such.key", "num.partitons")


def test_a_bad_value_says_where_it_was_set():
    with pytest.raises(ConfigError) as caught:
        load("node.id=1\n\nnum.partitions=zero\n")
    assert str(caught.value) == (
        "Invalid value zero for configuration num.partitions: Not a number of type INT; "
        "accepted: whole number, from 1 (server.properties line 3)"
    )
    with pytest.raises(ConfigError, match=r"\(environment KAFKA_CFG_NODE_ID\)"):
        load("", {"KAFKA_CFG_NODE_ID": "-3"})


@pytest.mark.parametrize("key", ["offsets.topic", "transaction.state.log"])
def test_segment_size_that_the_topic_cannot_have_is_refused_at_the_start(key):
    """A topic with such segments cannot be created, so no group would find its coordinator."""
    with pytest.raises(ConfigError, match=rf"{key}\.segment\.bytes"):
        load(f"{key}.segment.bytes=1048575\n")
    load(f"{key}.segment.bytes=1048576\n")


@pytest.mark.parametrize("override", ["", "num.partitions", "=3"])
def test_an_override_is_a_key_and_a_value(override):
    with pytest.raises(ConfigError, match="must be key=value"):
        load("", {}, override)


def test_an_override_may_hold_equals_signs_and_be_empty():
    config = load("", {}, "log.cleanup.policy=").config
    assert config.log_cleanup_policy == ()


def test_broker_id_is_an_older_name_of_node_id():
    assert load("broker.id=7").config.node_id == 7
    assert load("broker.id=7\nnode.id=7").config.node_id == 7
    assert load("broker.id=-1").config.node_id == 1
    with pytest.raises(ConfigError, match=r"broker.id \(7\) and node.id \(8\) must be the same"):
        load("broker.id=7\nnode.id=8")


def test_listeners_follow_the_advertised_ones_of_the_environment():
    environment = {
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:29092,PLAINTEXT_HOST://localhost:9092",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
    }
    first, second = load("", environment).config.endpoints
    assert (first.name, first.host, first.port) == ("PLAINTEXT", "0.0.0.0", 29092)
    assert (second.name, second.host, second.port) == ("PLAINTEXT_HOST", "0.0.0.0", 9092)
    assert second.advertised == ("localhost", 9092)


def test_listeners_that_are_set_do_not_follow():
    environment = {
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:29092",
        "KAFKA_LISTENERS": "PLAINTEXT://:9092",
    }
    (endpoint,) = load("", environment).config.endpoints
    assert (endpoint.port, endpoint.advertised) == (9092, ("kafka", 29092))
    (endpoint,) = load("advertised.listeners=PLAINTEXT://kafka:29092").config.endpoints
    assert (endpoint.host, endpoint.port) == ("localhost", 9092)


def test_testcontainers_environment():
    environment = {
        "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9092,BROKER://0.0.0.0:9093,CONTROLLER://0.0.0.0:9094",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:32768,BROKER://2f3c:9093",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
            "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_NODE_ID": "1",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
        "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    }
    loaded = load("", environment)
    assert [each.name for each in loaded.config.endpoints] == ["PLAINTEXT", "BROKER"]
    assert loaded.config.cluster_id == "4L6g3nShT-eMCtK--X86sw"
    assert loaded.unknown == ()


def test_a_controller_alone_is_refused():
    with pytest.raises(ConfigError, match="broker must be one of them"):
        load("process.roles=controller")


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("message.max.bytes=100000000", r"must be smaller than barnabas.journal.file.bytes"),
        ("barnabas.journal.max.bytes=67108864", "must be at least twice"),
        ("log.dirs=/a,/b", "Several data directories are not supported"),
        ("cordoned.log.dirs=/b", "Missing entries : /b$"),
        ("cordoned.log.dirs=./data,/b,/c", "Missing entries : /b, /c$"),
        ("cordoned.log.dirs=*,./data", "set to \\*, it must not contain other values"),
        ("log.cleaner.max.compaction.lag.ms=5", None),
        ("listeners=X://:9093", "Listener name X is missing in listener.security.protocol.map"),
        ("authorizer.class.name=org.Acl", "no other class can be loaded"),
    ],
)
def test_values_are_checked_together(override, expected):
    if expected is None:
        with pytest.raises(ConfigError, match="conflict topic config setting"):
            load("log.cleaner.min.compaction.lag.ms=10", {}, override)
    else:
        with pytest.raises(ConfigError, match=expected):
            load("", {}, override)


def test_cordoned_directories_are_the_data_directory_or_all():
    for given in ("*", "./data", "./data,./data", ""):
        load("", {}, f"cordoned.log.dirs={given}")
