"""Commands get in by Kafka's client settings; what they print, log and are called has no secret."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.real.cli.command import barnabas, command, environment, error_of
from tests.real.cli.documentation import PAGE
from tests.secured import (
    LISTENERS,
    PASSWORD,
    as_properties,
    broker_settings,
    login,
    token_login,
    trusting,
)
from tests.token_server import (
    CLIENT_ID,
    CLIENT_SECRET,
    TokenServerForTests,
    basic,
    client_credentials,
)


@pytest.fixture(scope="module")
def broker(keys):
    with Broker(config=broker_settings(keys)) as broker:
        yield broker


@pytest.fixture
def at(broker, monkeypatch):
    """Return a shell that asks one of the listeners."""

    def shell(name):
        (bound,) = (each.bound for each in broker.server.listeners if each.name == name)
        return Shell(monkeypatch, f"127.0.0.1:{bound[1]}")

    return shell


@pytest.fixture
def settings_file(tmp_path):
    def write(settings, name="client.properties"):
        path = tmp_path / name
        path.write_text(as_properties(settings))
        return str(path)

    return write


def certificate(keys):
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": keys.client.key_pem(),
        "ssl.keystore.certificate.chain": keys.client.chain_pem,
    }


def settings_of(keys, listener, mechanism="SCRAM-SHA-512"):
    settings = trusting(keys, LISTENERS[listener])
    if listener == "MTLS":
        settings |= certificate(keys)
    if "SASL" in listener:
        settings |= token_login(keys.token) if mechanism == "OAUTHBEARER" else login(mechanism)
    return settings


@pytest.mark.parametrize("listener", LISTENERS)
def test_every_command_gets_in(at, keys, settings_file, listener):
    shell, path = at(listener), settings_file(settings_of(keys, listener))
    topic = f"by-{listener.lower().replace('_', '-')}"

    def ask(*arguments, stdin=b""):
        return shell(*arguments, "--command-config", path, stdin=stdin)

    assert ask("topics", "create", topic).exit_code == 0
    assert ask("produce", topic, stdin=b"one\ntwo\n").exit_code == 0
    assert ask("consume", topic, "-o", "beginning", "-e").lines == ["one", "two"]
    assert ask("consume", topic, "-g", f"g-{topic}", "-o", "beginning", "-e").exit_code == 0
    assert ask("groups", "describe", f"g-{topic}").exit_code == 0
    assert ask("transactions", "list").exit_code == 0
    assert ask("records", "delete", topic, "--before", "1").exit_code == 0
    assert ask("cluster", "describe").exit_code == 0


def test_where_settings_come_from(at, broker, keys, settings_file, tmp_path, monkeypatch):
    shell = at("SASL_TLS")
    good = settings_file(settings_of(keys, "SASL_TLS"))
    bad = settings_file(settings_of(keys, "SASL_TLS") | login("PLAIN", password="x"), "bad")
    monkeypatch.setenv("BARNABAS_COMMAND_CONFIG", bad)
    assert "Invalid username or password" in shell("topics", "list").error
    assert shell("topics", "list", "--command-config", good).exit_code == 0
    (tmp_path / "profiles.toml").write_text(
        f'[one]\nbootstrap-server = "{shell.address}"\ncommand-config = "client.properties"\n'
    )
    monkeypatch.setenv("BARNABAS_PROFILES", str(tmp_path / "profiles.toml"))
    assert shell("topics", "list", "--profile", "one", server=False).exit_code == 0
    mechanism = ("--command-property", "sasl.mechanism=SCRAM-SHA-256")
    assert shell("topics", "list", "--command-config", good, *mechanism).exit_code == 0
    assert shell("topics", "list", *mechanism).exit_code == 2


def test_properties_alone(at, keys):
    arguments = [
        word
        for key, value in trusting(keys, "SSL").items()
        for word in ("--command-property", f"{key}={value}")
    ]
    assert at("TLS")("topics", "list", *arguments).exit_code == 0


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"sasl.mechanisme": "PLAIN"}, "sasl.mechanisme: unknown, did you mean sasl.mechanism"),
        ({"security.protocol": "TLS"}, "security.protocol: TLS is none of PLAINTEXT, SSL,"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"},
            "sasl.mechanism: GSSAPI is not available; there are OAUTHBEARER, PLAIN, SCRAM-SHA-256,",
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "/nowhere/ca.pem"},
            "ssl.truststore.location: /nowhere/ca.pem: No such file or directory",
        ),
    ],
)
def test_settings_that_cannot_be_used(at, settings_file, settings, expected):
    ended = at("SASL_TLS")("topics", "list", "--command-config", settings_file(settings))
    assert ended.exit_code == 2
    (line,) = ended.stderr.splitlines()
    assert expected in line


def test_a_file_that_is_not_there(at):
    ended = at("TLS")("topics", "list", "--command-config", "/nowhere")
    assert (ended.exit_code, ended.stderr) == (2, "barnabas: /nowhere: No such file or directory\n")


def test_tokens_of_a_server(at, settings_file):
    """Settings of Java's clients, new and old, and of librdkafka; and wrong ones."""
    shell = at("SASL")
    with TokenServerForTests() as server:
        protocol = {"security.protocol": "SASL_PLAINTEXT"}
        for settings in (
            client_credentials(server.url),
            client_credentials(server.url, are_in_jaas=True),
            {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": CLIENT_ID,
                "sasl.oauthbearer.client.secret": CLIENT_SECRET,
                "sasl.oauthbearer.token.endpoint.url": server.url,
            },
        ):
            path = settings_file(protocol | settings)
            ended = shell("topics", "list", "--command-config", path)
            assert (ended.exit_code, ended.stderr) == (0, "")
        assert {each.headers["Authorization"] for each in server.requests} == {basic()}
        secret = {"sasl.oauthbearer.client.credentials.client.secret": "wrong-secret"}
        path = settings_file(protocol | client_credentials(server.url) | secret)
        ended = shell("topics", "list", "--command-config", path)
        assert ended.exit_code == 1
        assert ended.stderr == (
            f"barnabas: {shell.address}: sasl.oauthbearer.token.endpoint.url: {server.url}: "
            "the server answers 401: invalid_client - Who are you?\n"
        )
        server.status = 503
        path = settings_file(protocol | client_credentials(server.url, scope="another"))
        ended = shell("topics", "list", "--command-config", path, "--timeout", "3")
        assert ended.exit_code == 1
        assert f"{server.url}: the server answers 503" in ended.stderr
        assert "secret" not in ended.stderr


def test_login_without_a_token_server_loads_no_http_modules(at, keys, settings_file):
    shell = at("SASL")
    for settings in (login("PLAIN"), token_login(keys.token)):
        path = settings_file({"security.protocol": "SASL_PLAINTEXT"} | settings)
        arguments = ("topics", "list", "-b", shell.address, "--command-config", path)
        code = (
            "import sys\nfrom barnabas.broker.cli.main import main\n"
            f"assert main({list(arguments)!r}) == 0\n"
            "print([name for name in ('http.client', 'ssl') if name in sys.modules])"
        )
        ended = subprocess.run(
            [sys.executable, "-c", code],
            env=environment({}),
            capture_output=True,
            text=True,
            check=True,
        )
        assert ended.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "given",
    [
        "sasl.jaas.config=x Password1;",
        "ssl.key.password=Password1",
        "sasl.oauthbearer.client.credentials.client.secret=Password1",
        "sasl.oauthbearer.client.secret=Password1",
        "Password1",
    ],
)
def test_secrets_are_not_taken_from_the_command_line(at, given):
    ended = at("SASL")("topics", "list", "--command-property", given)
    assert ended.exit_code == 2
    assert "Password1" not in ended.stderr
    assert (
        "--command-config" in ended.stderr
        or "expected KEY=VALUE, as in retention.ms=60000" in ended.stderr
    )


def test_a_misspelt_secret_is_not_shown(at, settings_file):
    path = settings_file({"sasl.pasword": "Password1", "security.protocol": "SASL_SSL"})
    ended = at("SASL")("topics", "list", "--command-config", path)
    assert "sasl.pasword: unknown, did you mean sasl.password?" in ended.stderr
    assert "Password1" not in ended.stderr


def test_the_list_of_processes_has_no_secret(at, keys, settings_file, tmp_path):
    shell = at("SASL_TLS")
    path = settings_file(settings_of(keys, "SASL_TLS"))
    assert shell("topics", "create", "seen", "--command-config", path).exit_code == 0
    with subprocess.Popen(
        command("consume", "seen", "-b", shell.address, "-o", "beginning"),
        cwd=tmp_path,
        env=environment({"BARNABAS_COMMAND_CONFIG": path}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        produced = shell("produce", "seen", "--command-config", path, stdin=b"one\n")
        assert produced.exit_code == 0
        assert process.stdout.readline() == b"one\n"  # It has logged in.
        for name in ("cmdline", "environ", "comm"):
            assert PASSWORD.encode() not in Path(f"/proc/{process.pid}/{name}").read_bytes()
        process.terminate()
        assert PASSWORD.encode() not in process.stderr.read()


def test_refused_login_is_one_line(at, keys, settings_file, tmp_path):
    address = at("SASL_TLS").address
    plain = barnabas("topics", "list", "-b", address, cwd=tmp_path)
    assert error_of(plain, 1) == (
        f"barnabas: {address}: the listener expects TLS: "
        "set security.protocol=SSL, or SASL_SSL with a login"
    )
    wrong = settings_file(
        settings_of(keys, "SASL_TLS") | {"ssl.truststore.location": keys.other_trust}
    )
    distrusted = barnabas("topics", "list", "-b", address, "--command-config", wrong, cwd=tmp_path)
    assert "is not signed by a trusted authority" in error_of(distrusted, 1)


def test_the_settings_of_the_documentation(at, keys, tmp_path):
    blocks = re.findall(r"```properties\n(.*?)```", PAGE.read_text(), re.DOTALL)
    with_password, with_tokens = (each.replace("/etc/kafka/ca.pem", keys.trust) for each in blocks)
    path = tmp_path / "client.properties"
    path.write_text(with_password)
    assert at("SASL_TLS")("topics", "list", "--command-config", str(path)).exit_code == 0
    stored = tmp_path / "issuer.properties"
    stored.write_text(as_properties({"secret": CLIENT_SECRET}))
    with TokenServerForTests() as server:
        for here, there in (
            ("/run/secrets/issuer.properties", str(stored)),
            ("https://issuer.example/token", server.url),
            ("client.id=ledger", f"client.id={CLIENT_ID}"),
        ):
            assert here in with_tokens
            with_tokens = with_tokens.replace(here, there)
        path.write_text(with_tokens)
        assert at("SASL_TLS")("topics", "list", "--command-config", str(path)).exit_code == 0
        assert server.requests[0].body.endswith(b"&scope=kafka")
