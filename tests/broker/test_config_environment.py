import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.config.broker_config import BROKER_CONFIGS
from barnabas.broker.config.loading import image_secrets
from barnabas.broker.config.loading.environment import (
    EXCLUDED,
    from_environment,
    ignored_variables,
    key_of,
    variable_of,
)
from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.types import ConfigError


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


def test_every_key_can_be_set_by_a_variable():
    assert [key_of(variable_of(key)) for key in BROKER_CONFIGS] == [*BROKER_CONFIGS]


def test_the_bitnami_dialect_wins_over_what_its_image_sets_itself():
    variables = from_environment({"KAFKA_CFG_NODE_ID": "2", "KAFKA_NODE_ID": "1"})
    assert [(each.key, each.value) for each in variables] == [("node.id", "1"), ("node.id", "2")]


@pytest.mark.parametrize(
    ("level", "expected"),
    [("WARN", "WARNING"), ("trace", "DEBUG"), ("FATAL", "ERROR"), ("INFO", "INFO")],
)
def test_log4j_levels_become_barnabas_levels(level, expected):
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


@pytest.fixture
def secrets(tmp_path, monkeypatch):
    monkeypatch.setattr(image_secrets, "DIRECTORY", str(tmp_path))
    return tmp_path


def test_stores_and_their_passwords_are_files_of_the_image(secrets):
    for name in ("store", "key", "trust"):
        (secrets / f"{name}.password").write_text(f"{name}-secret \n")
    environment = {
        "KAFKA_SSL_KEYSTORE_FILENAME": "broker.p12",
        "KAFKA_SSL_KEYSTORE_CREDENTIALS": "store.password",
        "KAFKA_SSL_KEYSTORE_PASSWORD": "another",
        "KAFKA_SSL_KEY_CREDENTIALS": "key.password",
        "KAFKA_SSL_TRUSTSTORE_FILENAME": "trust.p12",
        "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "trust.password",
        "KAFKA_SSL_CLIENT_AUTH": "required",
        "KAFKA_LISTENERS": "SSL://:9093",
    }
    assert {each.key: each.value for each in from_environment(environment)} == {
        "ssl.keystore.location": f"{secrets}/broker.p12",
        "ssl.keystore.password": "store-secret ",
        "ssl.key.password": "key-secret ",
        "ssl.truststore.location": f"{secrets}/trust.p12",
        "ssl.truststore.password": "trust-secret ",
        "ssl.client.auth": "required",
        "listeners": "SSL://:9093",
    }
    config = load_config(environment=environment).config
    assert config.settings["ssl.keystore.password"][0].origin == (
        "environment KAFKA_SSL_KEYSTORE_CREDENTIALS"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file or directory"),
        (b"\xff", "is not UTF-8"),
        (b"x" * 70_000, "is too long for a password"),
    ],
)
def test_a_password_that_cannot_be_read_stops_the_start(secrets, content, reason):
    if content is not None:
        (secrets / "password").write_bytes(content)
    with pytest.raises(ConfigError) as raised:
        load_config(environment={"KAFKA_SSL_KEY_CREDENTIALS": "password"})
    assert str(raised.value).startswith(f"KAFKA_SSL_KEY_CREDENTIALS: {secrets}/password")
    assert str(raised.value).endswith(reason)


def test_any_secret_may_be_in_a_file(tmp_path):
    (tmp_path / "token").write_text("abc def\n")
    (tmp_path / "jaas").write_text("some.Module required;\n")
    (tmp_path / "password").write_text("from-a-file")
    listener = "listener.name.sasl.plain.sasl.jaas.config"
    environment = {
        "KAFKA_BARNABAS_HTTP_BEARER_TOKEN_FILE": str(tmp_path / "token"),
        f"{variable_of(listener)}_FILE": str(tmp_path / "jaas"),
        "KAFKA_CFG_SSL_KEYSTORE_PASSWORD_FILE": str(tmp_path / "password"),
        "KAFKA_SSL_KEYSTORE_PASSWORD": "plain",
        "KAFKA_SSL_KEY_PASSWORD_FILE": "",
    }
    found = {each.key: each for each in from_environment(environment)}
    assert {key: each.value for key, each in found.items()} == {
        "barnabas.http.bearer.token": "abc def",
        listener: "some.Module required;",
        "ssl.keystore.password": "from-a-file",
    }
    assert found["ssl.keystore.password"].name == "KAFKA_CFG_SSL_KEYSTORE_PASSWORD_FILE"


def test_ordinary_key_is_not_read_from_a_file(tmp_path):
    environment = {
        "KAFKA_BARNABAS_SASL_JAAS_FILE": "/jaas.conf",
        "KAFKA_NUM_PARTITIONS_FILE": str(tmp_path / "none"),
    }
    assert {each.key for each in from_environment(environment)} == {
        "barnabas.sasl.jaas.file",
        "num.partitions.file",
    }


def test_a_secret_whose_file_is_not_there_stops_the_start(tmp_path):
    name = "KAFKA_BARNABAS_HTTP_BEARER_TOKEN_FILE"
    with pytest.raises(ConfigError) as raised:
        load_config(environment={name: str(tmp_path / "none")})
    assert str(raised.value) == f"{name}: {tmp_path}/none: No such file or directory"
