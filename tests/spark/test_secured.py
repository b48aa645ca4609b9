"""Pipelines over TLS and with logins: every kind of sink, and no secret in what they leave.

Against Barnabas and Apache Kafka, with options as Spark users write them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import confluent_kafka
import pytest

from examples import spark_data
from tests.checkout import ROOT
from tests.counterparts.protected import Protected, ProtectedBarnabas, ProtectedKafka
from tests.interop.administration import create
from tests.products import case, for_the_night
from tests.secured import LISTENERS, PASSWORD, Keys, login, token_login, trusting
from tests.spark.command import start_command
from tests.spark.conftest import SETTINGS
from tests.spark.movements import committed
from tests.spark.sessions import command_of, session_members
from tests.token_server import CLIENT_SECRET, TokenServerForTests, basic, client_credentials
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]

PAGE = ROOT / "docs" / "spark.md"
PATIENCE_S = 300
RECORDS = 50
BROKERS = (case(ProtectedBarnabas, in_test=True), case(ProtectedKafka, in_test=False))
KINDS = ("auto", "single_transaction", "stock", "table")
"""`auto` is `two_phase` with Barnabas, and `single_transaction` with Apache Kafka."""
PIPELINES = """
import json
from pathlib import Path
from barnabas.spark import Pipeline, Sink, Source

settings = json.loads(Path("settings.json").read_text())

def shown(rows):
    rows.explain(extended=True)
    return rows.select("value")

def table(rows, batch):
    return batch.write_parquet(rows, f"{Path.cwd()}/table")

def pipeline(kind, where):
    more = {"kind": "auto", "table": table} if kind == "table" else {"kind": kind}
    source, sink = settings["sources"][where], settings["sinks"][where]
    return Pipeline(
        source=Source(topic="in", **source),
        transform=shown,
        sink=Sink(sink_id=f"{kind}-{where}", topic=f"out-{kind}-{where}", **sink, **more))

for kind, where in settings["pipelines"]:
    globals()[f"{kind}_{where}"] = pipeline(kind, where)
"""


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module", params=BROKERS, ids=lambda each: each.name.split()[0])
def broker(request, keys, tmp_path_factory):
    directory = tmp_path_factory.mktemp(request.param.__name__)
    # Logins do not hold for as long as the pipelines run.
    settings = {"connections.max.reauth.ms": "3000"}
    if request.param is ProtectedBarnabas:
        settings |= SETTINGS
    with request.param(keys, directory, **settings) as running:
        spark_data.create_topics(running.bootstrap_servers, ["in"], 2)
        settings = {"bootstrap.servers": running.bootstrap_servers, "log_level": 0}
        producer = confluent_kafka.Producer(settings)
        for number in range(RECORDS):
            producer.produce("in", b"%d" % number)
        assert producer.flush(PATIENCE_S) == 0
        yield running


def access(broker: Protected, keys: Keys, listener: str, mechanism: str = "SCRAM-SHA-512"):
    """Return servers and options of a source or sink."""
    settings = trusting(keys, LISTENERS[listener])
    if listener == "MTLS":  # All of it in the options, as one has it from a store of secrets.
        settings |= {
            "ssl.truststore.certificates": keys.authority.root_pem,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": keys.client.key_pem(),
            "ssl.keystore.certificate.chain": keys.client.chain_pem,
        }
        del settings["ssl.truststore.location"]
    if "SASL" in listener:
        settings |= login(mechanism)
    options = {f"kafka.{key}": value for key, value in settings.items()}
    return {"servers": broker.servers(listener), "options": options}


def token_access(broker: Protected, keys: Keys, listener: str, settings):
    """Return the servers and options of a client that logs in with a token."""
    settings = trusting(keys, LISTENERS[listener]) | settings
    options = {f"kafka.{key}": value for key, value in settings.items()}
    return {"servers": broker.servers(listener), "options": options}


def run(directory: Path, pipelines, sources, sinks, *arguments: str):
    """Start the command with pipelines of these kinds."""
    settings = {"pipelines": pipelines, "sources": sources, "sinks": sinks}
    (directory / "settings.json").write_text(json.dumps(settings))
    (directory / "pipelines.py").write_text(PIPELINES)
    # A source or sink that ignores its own servers reaches no broker.
    return start_command(directory, "pipelines.py", "127.0.0.1:1", *arguments)


def ended(process):
    with process:
        try:
            output, errors = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    return process.returncode, output, errors


def secrets_of(keys: Keys):
    body = keys.client.key_pem().splitlines()[1]
    return {
        "a password": PASSWORD.encode(),
        "a private key": body.encode(),
        "a client's secret": CLIENT_SECRET.encode(),
    }


@pytest.fixture(scope="module")
def issuer(keys):
    """A server of tokens that do not hold for as long as the pipelines run."""
    with TokenServerForTests(keys.broker, lifetime_s=20) as server:
        yield server


def issued(issuer: TokenServerForTests, keys: Keys):
    """Return the settings of a client that gets tokens there, also for Spark's own.

    The client fetches a new token after half of its lifetime: on a busy machine the next one takes
    seconds.
    """
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": keys.trust}
    half = {"sasl.login.refresh.window.factor": "0.5", "sasl.login.refresh.window.jitter": "0"}
    return client_credentials(issuer.url, are_in_jaas=True, **trust) | half


FEW = {
    *((kind, "tls") for kind in ("stock", "table")),
    *(("auto", where) for where in ("certificate", "mixed", "file", "issuer")),
}
"""Pipelines in `make test`: each way to log in, and each client that does."""


@pytest.mark.parametrize("is_complete", [case(False, in_test=True), case(True, in_test=False)])
def test_every_kind_of_sink_over_tls_with_a_login(broker, keys, issuer, tmp_path, is_complete):
    """The other pipelines of the file have a certificate, a password without TLS, or tokens."""
    everywhere = {
        "tls": access(broker, keys, "SASL_TLS"),
        "certificate": access(broker, keys, "MTLS"),
        "password": access(broker, keys, "SASL", "PLAIN"),
    }
    sources = {**everywhere, "mixed": everywhere["password"]}
    sinks = {**everywhere, "mixed": everywhere["certificate"]}
    pipelines = [
        *((kind, "tls") for kind in KINDS),
        *(("auto", where) for where in ("certificate", "password", "mixed")),
    ]
    if isinstance(broker, ProtectedBarnabas):
        tokens = {
            "file": token_access(broker, keys, "SASL", token_login(keys.token)),
            "issuer": token_access(broker, keys, "SASL_TLS", issued(issuer, keys)),
        }
        sources, sinks = sources | tokens, sinks | tokens
        pipelines += [("auto", "file"), *((kind, "issuer") for kind in ("auto", "stock", "table"))]
    if not is_complete:
        # With names of their own, since all share a broker.
        pipelines = [(kind, f"few_{where}") for kind, where in pipelines if (kind, where) in FEW]
        sources, sinks = (
            {f"few_{where}": options for where, options in each.items()}
            for each in (sources, sinks)
        )
    for kind, where in pipelines:
        create(broker.bootstrap_servers, f"out-{kind}-{where}", partitions=2)
    (tmp_path / "events").mkdir()
    process = run(
        *(tmp_path, pipelines, sources, sinks, "--once", "--verbose"),
        *("--conf", "spark.eventLog.enabled=true", "--conf", "spark.eventLog.compress=false"),
        *("--conf", f"spark.eventLog.dir={tmp_path / 'events'}"),
    )
    code, output, errors = ended(process)
    assert code == 0, errors
    rows = {json.loads(line)["pipeline"]: json.loads(line)["rows"] for line in output.splitlines()}
    assert len(rows) == len(pipelines)
    for kind, where in pipelines:
        got = committed(broker.bootstrap_servers, f"out-{kind}-{where}")
        assert sorted(got) == list(range(RECORDS)), (kind, where)
    (tmp_path / "settings.json").unlink()
    left = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    left |= {Path("output"): output.encode(), Path("errors"): errors.encode()}
    for key in ("sasl.jaas.config", "ssl.keystore.key"):
        assert f"kafka.{key}=*********(redacted)" in errors
    assert any(b"SQLExecutionStart" in each for path, each in left.items() if "events" in str(path))
    for what, secret in secrets_of(keys).items():
        assert [str(path) for path, each in left.items() if secret in each] == [], what
    if isinstance(broker, ProtectedBarnabas):
        by_java = ["Java" in each.headers.get("User-Agent", "") for each in issuer.requests]
        assert {True, False} == set(by_java)
        assert {each.headers["Authorization"] for each in issuer.requests} == {basic()}


@for_the_night(beside="tests/spark/test_secured.py::test_every_kind_of_sink_over_tls_with_a_login")
def test_the_list_of_processes_shows_no_secret(broker, keys, tmp_path):
    create(broker.bootstrap_servers, "out-auto-seen", partitions=2)
    where = {"seen": access(broker, keys, "SASL_TLS")}
    process = run(tmp_path, [("auto", "seen")], where, where)
    try:
        wait_until(
            lambda: len(committed(broker.bootstrap_servers, "out-auto-seen")) == RECORDS,
            seconds=PATIENCE_S,
            pause_s=1,
        )
        lines = [command_of(pid) for pid in session_members(process.pid)]
        assert any(b"pyspark" in line for line in lines)
        assert all(PASSWORD.encode() not in line for line in lines)
    finally:
        process.terminate()
        code, _, errors = ended(process)
    assert (code, PASSWORD in errors) == (0, False)


@for_the_night(beside="tests/spark/test_secured.py::test_every_kind_of_sink_over_tls_with_a_login")
def test_the_pipeline_of_the_documentation(broker, keys, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (block,) = [each for each in blocks if "ScramLoginModule" in each]
    text = block.replace("/etc/kafka/ca.pem", keys.trust).replace('"payments"', '"in"')
    (tmp_path / "secured.py").write_text(
        f"def movements(rows):\n    return rows.select('value')\n{text}"
    )
    create(broker.bootstrap_servers, "movements", partitions=2)
    servers = broker.servers("SASL_TLS")
    process = start_command(tmp_path, "secured.py", servers, "--once", KAFKA_PASSWORD=PASSWORD)
    code, _, errors = ended(process)
    assert (code, errors) == (0, "")
    assert sorted(committed(broker.bootstrap_servers, "movements")) == list(range(RECORDS))


@pytest.mark.parametrize("part", [case("sources", in_test=False), case("sinks", in_test=True)])
def test_a_wrong_password_ends_it_in_one_line(broker, keys, tmp_path, part):
    good, bad = access(broker, keys, "SASL_TLS"), access(broker, keys, "SASL_TLS")
    bad["options"] |= {f"kafka.{key}": each for key, each in login("PLAIN", password="x9").items()}
    parts = {"sources": {part: good}, "sinks": {part: good}} | {part: {part: bad}}
    create(broker.bootstrap_servers, f"out-auto-{part}", partitions=2)
    code, output, errors = ended(run(tmp_path, [("auto", part)], *parts.values(), "--once"))
    assert (code, output) == (1, "")
    assert re.fullmatch(
        rf"barnabas\.spark: auto-{part}: [^\n]* is not possible, [^\n]*: login by PLAIN as alice:"
        r" Authentication failed: Invalid username or password;"
        r" the options [^\n]* say how to get in\.\n",
        errors,
    )
