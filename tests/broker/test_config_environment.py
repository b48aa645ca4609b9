import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.config.broker_config import BROKER_CONFIGS
from barnabas.broker.config.environment import (
    EXCLUDED,
    from_environment,
    ignored_variables,
    key_of,
    variable_of,
)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("KAFKA_ABC_DEF", "abc.def"),
        ("KAFKA_ABC__DEF", "abc_def"),
        ("KAFKA_ABC___DEF", "abc-def"),
        ("KAFKA_NODE_ID", "node.id"),
        ("KAFKA_CFG_NODE_ID", "node.id"),
        ("KAFKA_KAFKA_METRICS_REPORTERS", "metrics.reporters"),
        ("KAFKA_LOG_DIRS", "log.dirs"),
        ("CLUSTER_ID", "cluster.id"),
        ("KAFKA_LOG4J_ROOT_LOGLEVEL", "barnabas.log.level"),
        ("KAFKA_CREATE_TOPICS", "barnabas.create.topics"),
        ("KAFKA_BARNABAS_JOURNAL_FILE_BYTES", "barnabas.journal.file.bytes"),
        ("KAFKA_HEAP_OPTS", None),
        ("KAFKA_HEAP_OPT", None),
        ("KAFKA_LOG4J_LOGGERS", None),
        ("KAFKA_CREATE_TOPICS_SEPARATOR", None),
        ("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "auto.create.topics.enable"),
        ("KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP", "listener.security.protocol.map"),
        ("KAFKA_KRAFT_CLUSTER_ID", "cluster.id"),
        ("KAFKA_VERSION", None),
        ("KAFKA_", None),
        ("PATH", None),
        ("MY_KAFKA_NODE_ID", None),
        ("kafka_node_id", None),
    ],
)
def test_names(name, key):
    assert key_of(name) == key


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ("-Djava.security.auth.login.config=/etc/kafka/jaas.conf", "/etc/kafka/jaas.conf"),
        ("-Xmx1g -Djava.security.auth.login.config=a.conf -Dx=y", "a.conf"),
        ("-Djava.security.auth.login.config='a b.conf'", "a b.conf"),
        ('-Djava.security.auth.login.config=="a.conf"', "a.conf"),
        (
            "-Djava.security.auth.login.config=a -Djava.security.auth.login.config=b",
            "b",
        ),
    ],
)
def test_the_file_with_users_is_found_among_the_options_of_java(options, path):
    environment = {"KAFKA_OPTS": options}
    assert from_environment(environment) == [("barnabas.sasl.jaas.file", path, "KAFKA_OPTS")]
    assert ignored_variables(environment) == []


@pytest.mark.parametrize(
    "options", ["", "-javaagent:x.jar", "-Djava.security.auth.login.config=", "-Dx=-Djava"]
)
def test_other_options_of_java_mean_nothing(options):
    environment = {"KAFKA_OPTS": options}
    assert from_environment(environment) == []
    assert ignored_variables(environment) == ["KAFKA_OPTS"]


words = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1)
keys = st.lists(st.tuples(words, st.sampled_from([".", "-", "_"])), min_size=1).map(
    lambda parts: "".join(word + separator for word, separator in parts)[:-1]
)


@given(keys)
def test_a_key_comes_back_from_its_variable(key):
    name = variable_of(key)
    if name not in EXCLUDED and "KAFKA_" not in name[6:] and not name.startswith("KAFKA_CFG_"):
        assert key_of(name) == key


@pytest.mark.parametrize("key", BROKER_CONFIGS)
def test_every_key_can_be_set_by_a_variable(key):
    assert key_of(variable_of(key)) == key


def test_the_bitnami_dialect_wins_over_what_its_image_sets_itself():
    variables = from_environment({"KAFKA_CFG_NODE_ID": "2", "KAFKA_NODE_ID": "1"})
    assert [(each.key, each.value) for each in variables] == [("node.id", "1"), ("node.id", "2")]


@pytest.mark.parametrize(
    ("level", "expected"),
    [("WARN", "WARNING"), ("trace", "DEBUG"), ("FATAL", "ERROR"), ("INFO", "INFO")],
)
def test_log4j_levels_become_ours(level, expected):
    (variable,) = from_environment({"KAFKA_LOG4J_ROOT_LOGLEVEL": level})
    assert variable.value == expected
    assert BROKER_CONFIGS["barnabas.log.level"].parse(variable.value) == expected


@pytest.mark.parametrize(
    ("topics", "separator", "expected"),
    [
        ("a:1:1,b:3:1:compact", None, "a:1:1,b:3:1:compact"),
        (" a:1:1 , b:3:1,\n", None, "a:1:1,b:3:1"),
        ("a:1:1\nb:3:1\n", "$'\\n'", "a:1:1,b:3:1"),
        ("a:1:1;b:3:1", ";", "a:1:1,b:3:1"),
        ("a:1:1", "", "a:1:1"),
        ("", None, ""),
    ],
    ids=["commas", "space", "lines", "semicolon", "empty-separator", "empty"],
)
def test_topics_in_the_dialect_of_wurstmeister(topics, separator, expected):
    environment = {"KAFKA_CREATE_TOPICS": topics}
    if separator is not None:
        environment["KAFKA_CREATE_TOPICS_SEPARATOR"] = separator
    (variable,) = from_environment(environment)
    assert variable == ("barnabas.create.topics", expected, "KAFKA_CREATE_TOPICS")
    assert ignored_variables(environment) == []
    BROKER_CONFIGS["barnabas.create.topics"].parse(variable.value)


def test_variables_of_start_scripts_are_named_as_ignored():
    environment = {"KAFKA_HEAP_OPTS": "-Xmx1g", "KAFKA_VERSION": "4.3.0", "HOME": "/root"}
    assert ignored_variables(environment) == ["KAFKA_HEAP_OPTS"]
    assert from_environment(environment) == []
