"""Connections of the connector over TLS and with a login, and its errors without."""

from __future__ import annotations

import os
import pickle
import re
import time
from dataclasses import replace

import pytest

from barnabas.spark_connector import Pipeline, Sink, Source
from barnabas.spark_connector.cluster.cluster import Cluster, connected
from barnabas.spark_connector.errors import BrokerUnreachable, NotLetIn, WrongOption
from barnabas.spark_connector.failures.sentences import sentence_of
from barnabas.spark_connector.pipelines.checks import check_pipelines
from barnabas.spark_connector.pipelines.preflight import check_brokers
from barnabas.spark_connector.refusals import WrongUse
from barnabas.spark_connector.running.broker_view import BrokerView
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.spark_connector.settings.security import security_of_options
from barnabas.spark_connector.sinks.table import decided
from barnabas.spark_connector.sinks.task import borrowed_cluster
from barnabas.testing import Broker
from tests.checkout import ROOT
from tests.secured import (
    LISTENERS,
    MODULES,
    broker_settings,
    login,
    token_login,
    trusting,
)
from tests.token_server import TokenServerForTests, client_credentials

SECRET = "alice-secret"


@pytest.fixture(scope="module")
def broker(keys):
    with Broker(config=broker_settings(keys)) as running:
        running.create_topic("in")
        running.create_topic("out")
        yield running


def servers(broker, listener):
    (bound,) = (each.bound for each in broker.server.listeners if each.name == listener)
    return f"127.0.0.1:{bound[1]}"


def as_options(settings, prefix="kafka."):
    return {f"{prefix}{key}": value for key, value in settings.items()}


def options_of(keys, listener, mechanism="SCRAM-SHA-512"):
    """Return the options for a listener, as Spark users write them."""
    settings = trusting(keys, LISTENERS[listener])
    if listener == "MTLS":
        settings |= {"ssl.keystore.location": keys.certificate, "ssl.keystore.type": "PEM"}
    if "SASL" in listener:
        settings |= token_login(keys.token) if mechanism == "OAUTHBEARER" else login(mechanism)
    return as_options(settings)


def pipeline(broker, listener, options, **more):
    where = servers(broker, listener)
    return Pipeline(
        source=Source(topic="in", servers=where, options=options),
        sink=Sink(sink_id="a", topic="out", servers=where, options=options, **more),
    )


# ----------------------------------------------------------------------------------- getting in


@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [
        *((each, "") for each in ("PLAIN", "TLS", "MTLS")),
        ("SASL", "PLAIN"),
        ("SASL", "OAUTHBEARER"),
        ("SASL_TLS", "SCRAM-SHA-256"),
        ("SASL_TLS", "SCRAM-SHA-512"),
    ],
)
def test_all_that_the_driver_asks_gets_in(broker, keys, listener, mechanism):
    options = options_of(keys, listener, mechanism)
    each = pipeline(broker, listener, options, kind="single_transaction")
    check_pipelines([each])
    assert check_brokers(each) == "single_transaction"
    with BrokerView(each) as view:
        assert view._sink.existing(["out"]) == {"out": 1}
        assert view._source.existing(["in"]) == {"in": 1}
    assert decided("a", servers=servers(broker, listener), options=options) == "false"
    parsed = each.sink.sink_options("c", each.source)
    assert parsed.reads_where_it_writes
    with borrowed_cluster(pickle.loads(pickle.dumps(parsed))) as cluster:
        assert cluster.partition_count("out") == 1
    with borrowed_cluster(parsed) as again:
        assert again is cluster
    cluster.close()


def test_all_that_asks_gets_in_with_a_token_of_a_server(broker, keys):
    """The driver and each of its tasks, which have one token together."""
    with TokenServerForTests() as server:
        settings = client_credentials(server.url, are_in_jaas=True)
        options = as_options(trusting(keys, "SASL_SSL") | settings)
        each = pipeline(broker, "SASL_TLS", options, kind="single_transaction")
        check_pipelines([each])
        assert check_brokers(each) == "single_transaction"
        with BrokerView(each) as view:
            assert view._source.existing(["in"]) == {"in": 1}
        parsed = pickle.loads(pickle.dumps(each.sink.sink_options("c", each.source)))
        assert parsed.reads_where_it_writes
        with borrowed_cluster(parsed) as cluster:
            assert cluster.partition_count("out") == 1
        cluster.close()
        assert len(server.requests) == 1
        newer = as_options(trusting(keys, "SASL_SSL") | client_credentials(server.url))
        assert decided("a", servers=servers(broker, "SASL_TLS"), options=newer) == "false"
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("kafka.sasl.oauthbearer.client.credentials.client.id", "clientId="),
        ("kafka.sasl.oauthbearer.client.credentials.client.Secret", "clientSecret="),
        ("kafka.sasl.oauthbearer.scope", "scope="),
    ],
)
def test_settings_unknown_to_sparks_own_clients_are_rejected(name, instead):
    """The sinks of Barnabas support them."""
    settings = client_credentials("https://x/", are_in_jaas=True)
    options = as_options({"security.protocol": "SASL_SSL"} | settings) | {name: SECRET}
    sink = Sink(sink_id="a", topic="out", options=options)
    check_pipelines([Pipeline(source=lambda _spark: None, sink=sink)])
    source = Source(topic="in", options=options)
    for part, each in (
        ("source", Pipeline(source=source, sink=sink)),
        ("sink", Pipeline(source=Source(topic="in"), sink=replace(sink, kind="stock"))),
    ):
        with pytest.raises(WrongUse) as raised:
            check_pipelines([each])
        assert str(raised.value) == (
            f"pipeline a: the {part}'s option {name} has no effect on Spark's own Kafka clients,"
            f" which are older: write {instead} into kafka.sasl.jaas.config"
        )


def test_source_has_its_own_servers_and_login(broker, keys):
    source = Source(
        topic="in", servers=servers(broker, "SASL"), options=options_of(keys, "SASL", "PLAIN")
    )
    sink = Sink(sink_id="a", servers=servers(broker, "MTLS"), options=options_of(keys, "MTLS"))
    found = sink.sink_options("c", source)
    assert not found.reads_where_it_writes
    assert (found.security.protocol, found.source_security.protocol) == ("SSL", "SASL_PLAINTEXT")
    with (
        connected(found) as cluster,
        cluster.another(found.source_servers, found.source_security) as there,
    ):
        assert there.existing(["in"]) == cluster.existing(["in"]) == {"in": 1}
    with BrokerView(Pipeline(source=lambda _spark: None, sink=sink)) as view:
        assert view._source.existing(["in"]) == {"in": 1}
    said = as_options(login("PLAIN") | {"security.protocol": "SASL_PLAINTEXT"}, "source.kafka.")
    options = {**sink.options, **said, "sourceServers": source.servers}
    elsewhere = Sink(sink_id="a", servers=sink.servers, options=options)
    with BrokerView(Pipeline(source=lambda _spark: None, sink=elsewhere)) as view:
        assert view._source.existing(["in"]) == {"in": 1}
        assert view._source.servers == source.servers


def test_the_same_brokers_as_another_user_are_asked_as_that_user():
    least = {"kafka.bootstrap.servers": "x:1", "sinkId": "a", "sourceServers": "x:1"}
    sink = as_options({"security.protocol": "SASL_SSL"} | login("PLAIN"))
    source = as_options({"security.protocol": "SASL_SSL"} | login("PLAIN", "bob"), "source.kafka.")
    same = as_options({"security.protocol": "SASL_SSL"} | login("PLAIN"), "source.kafka.")
    assert SinkOptions.parse(least | sink).reads_where_it_writes
    assert SinkOptions.parse(least | sink | same).reads_where_it_writes
    assert not SinkOptions.parse(least | sink | source).reads_where_it_writes
    assert not SinkOptions.parse(least | sink | {"sourceServers": "y:1"}).reads_where_it_writes


@pytest.mark.parametrize("package", ["", "kafkashaded."])
@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", "plain.PlainLoginModule"), ("SCRAM-SHA-256", "scram.ScramLoginModule")],
)
def test_login_modules_as_spark_users_write_them(package, mechanism, module):
    given = {
        "Kafka.Security.Protocol": "SASL_SSL",
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": f"{package}{MODULES}.{module} required\n"
        "  username='$ConnectionString'\n  password='End\"point=sb://x/;Key=abc=';",
    }
    found = security_of_options(given).credential
    assert (found.user, found.password) == ("$ConnectionString", 'End"point=sb://x/;Key=abc=')


@pytest.mark.parametrize("package", ["", "kafkashaded."])
@pytest.mark.parametrize("version", ["", "secured."])
def test_tokens_of_a_server_as_spark_users_write_them(package, version):
    """Older clients have the handler in another package; Databricks puts its own in front."""
    module = f"{package}{MODULES}.oauthbearer"
    given = {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.sasl.jaas.config": f"{module}.OAuthBearerLoginModule required\n"
        "  clientId='c' clientSecret='s=' scope='api://x/.default' extension_logicalCluster='l';",
        "kafka.sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
        "kafka.sasl.login.callback.handler.class": (
            f"{module}.{version}OAuthBearerLoginCallbackHandler"
        ),
    }
    found = security_of_options(given).credential
    endpoint = found.endpoint
    assert (endpoint.client_id, endpoint.client_secret) == ("c", "s=")
    assert endpoint.scope == "api://x/.default"
    assert found.extensions == (("logicalCluster", "l"),)


# -------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"sasl.mechanisme": "x"}, "kafka.sasl.mechanisme: unknown, did you mean sasl.mechanism?"),
        ({"ssl.trustore.location": "x"}, "unknown, did you mean ssl.truststore.location?"),
        ({"security.protocol": "TLS"}, "TLS is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL."),
        ({"security.protocol": "SASL_SSL"}, "Kafka's default, GSSAPI (Kerberos), is not available"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"},
            "kafka.sasl.mechanism: GSSAPI is not available; there are OAUTHBEARER, PLAIN, SCRAM-",
        ),
        (
            {"sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.Handler"},
            "kafka.sasl.client.callback.handler.class: no Java class can be loaded here.",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
            "kafka.sasl.jaas.config: must be set: PLAIN takes org.apache.kafka.common.security",
        ),
        (
            {"ssl.ca.location": "/ca.pem"},
            "is librdkafka's, which Spark's own clients do not know; use kafka.ssl.truststore.loca",
        ),
        ({"sasl.password": SECRET}, "use kafka.sasl.jaas.config."),
        ({"sasl.oauthbearer.client.secret": SECRET}, "use kafka.sasl.jaas.config."),
        (
            {"security.protocol": "SASL_SSL"} | client_credentials("https://user@x/"),
            "kafka.sasl.oauthbearer.token.endpoint.url: it must be a URL with https:, http: or fi",
        ),
        ({"sasl.oauthbearer.assertion.file": "x"}, "assertions are not available: tokens are req"),
        ({"sasl.jaas.config": SECRET}, "kafka.security.protocol: it is not set, and without it"),
    ],
)
def test_invalid_security_option_is_rejected_by_name(wrong, sentence):
    for part in ("sink", "source"):
        options = as_options(wrong)
        each = Pipeline(
            source=Source(topic="in", options=options if part == "source" else {}),
            sink=Sink(sink_id="a", topic="out", options=options if part == "sink" else {}),
        )
        with pytest.raises(WrongOption, match=r"^pipeline a: The option kafka\.") as raised:
            check_pipelines([each])
        assert sentence in str(raised.value)
        assert SECRET not in str(raised.value)


def test_other_source_options_are_rejected():
    least = {"kafka.bootstrap.servers": "x:1", "sinkId": "a"}
    with pytest.raises(WrongOption, match=r"behind source\.kafka\. stands how to get in"):
        SinkOptions.parse(least | {"source.kafka.group.id": "x"})
    sink = Sink(sink_id="a", topic="out", options={"source.kafka.security.protocol": "SSL"})
    with pytest.raises(WrongUse, match="is said with the source's options"):
        check_pipelines([Pipeline(source=Source(topic="in"), sink=sink)])
    check_pipelines([Pipeline(source=lambda _spark: None, sink=sink)])


def test_a_store_that_is_not_there():
    options = {"kafka.security.protocol": "SSL", "kafka.ssl.truststore.location": "/nowhere.pem"}
    sink = Sink(sink_id="a", servers="127.0.0.1:1", options=options)
    with pytest.raises(
        WrongOption, match=r"kafka\.ssl\.truststore\.location: /nowhere\.pem: No su"
    ):
        connected(sink.sink_options())


def test_refused_login_fails_at_once_in_one_line(broker, keys):
    wrong_password = as_options(trusting(keys, "SASL_SSL") | login("PLAIN", password="Password1"))
    wrong_trust = options_of(keys, "TLS") | {"kafka.ssl.truststore.location": keys.other_trust}
    for listener, options, sentence in (
        ("SASL_TLS", wrong_password, "login by PLAIN as alice: Authentication failed: Invalid"),
        ("TLS", wrong_trust, "the broker's certificate is not signed by a trusted"),
        ("TLS", {}, "the listener expects TLS: set security.protocol=SSL"),
        ("MTLS", options_of(keys, "TLS"), "ssl.keystore"),
    ):
        started = time.monotonic()
        with pytest.raises(NotLetIn, match="is not possible") as raised:
            check_brokers(pipeline(broker, listener, options))
        assert time.monotonic() - started < 10
        said = str(raised.value)
        assert sentence in said
        assert said.endswith("kafka.security.*, kafka.sasl.* and kafka.ssl.* say how to get in.")
        assert "\n" not in said
        assert "Password1" not in said
    # So that a commit that was under way is in doubt, as with any broker that does not answer.
    assert issubclass(NotLetIn, BrokerUnreachable)


def test_a_token_that_does_not_come_is_said_in_one_line(broker, keys):
    with TokenServerForTests() as server:
        wrong = {"clientSecret": "a-wrong-secret"}
        refused = client_credentials(server.url, are_in_jaas=True, **wrong)
        options = as_options(trusting(keys, "SASL_SSL") | refused)
        with pytest.raises(NotLetIn, match="is not possible") as raised:
            check_brokers(pipeline(broker, "SASL_TLS", options))
        assert len(server.requests) == 1
    said = str(raised.value)
    assert f"{server.url}: the server answers 401: invalid_client - Who are you?" in said
    assert "\n" not in said
    assert "secret" not in said


def test_unavailable_token_server_is_retried(broker, keys):
    with TokenServerForTests() as server:
        answers = iter([503, 503, 200])

        def next_answer():
            server.status = next(answers)

        server.before = next_answer
        settings = client_credentials(server.url, are_in_jaas=True)
        settings["sasl.login.retry.backoff.ms"] = "0"  # Then the client asks once for each login.
        options = as_options(trusting(keys, "SASL_SSL") | settings)
        check_brokers(pipeline(broker, "SASL_TLS", options))
        assert len(server.requests) == 3


def test_the_options_of_the_documentation(monkeypatch):
    text = (ROOT / "docs" / "spark.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (block,) = [each for each in blocks if "OAuthBearerLoginModule" in each]
    monkeypatch.setenv("CLIENT_SECRET", SECRET)
    names = {"os": os}
    exec(block, names)
    endpoint = security_of_options(names["access"]).credential.endpoint
    assert (endpoint.client_id, endpoint.client_secret, endpoint.scope) == (
        *("ledger", SECRET),
        "kafka",
    )


@pytest.mark.parametrize(
    "stages", ["Caused by: ", "\n\tat x\nCaused by: java.lang.E: x\nCaused by: "]
)
def test_refused_login_of_sparks_own_client_is_reported(stages):
    text = (
        "org.apache.spark.SparkException: Job aborted\n"
        f"{stages}org.apache.kafka.common.errors.SaslAuthenticationException: "
        "Authentication failed: Invalid username or password\n\tat org.apache"
    )
    assert sentence_of(Exception(text)) == (
        "Spark's Kafka client was not let in: Authentication failed: Invalid username or password;"
        " the options kafka.security.*, kafka.sasl.* and kafka.ssl.* say how to get in"
    )


# ---------------------------------------------------------------------------------------- secrets


def test_no_text_of_any_of_it_has_a_secret(keys):
    options = {**options_of(keys, "SASL_TLS"), "kafka.ssl.keystore.key": "PRIVATE"}
    each = Pipeline(
        source=Source(topic="in", options=options),
        sink=Sink(sink_id="a", topic="out", servers="127.0.0.1:1", options=options),
    )
    parsed = each.sink.sink_options("c", each.source)
    for text in map(repr, (each, parsed, parsed.security, Cluster)):
        assert SECRET not in text
        assert "PRIVATE" not in text
