"""Listeners with TLS of a broker as users start it: what stops the start, and SIGHUP."""

import signal
import ssl
import time
from pathlib import Path

import pytest

from tests.broker import tls
from tests.certificates import DAY, Authority
from tests.products import case
from tests.real.cli.command import Served, barnabas, error_of, free_port

STORES = Path(tls.__file__).parent / "stores"


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture
def store(tmp_path, authority):
    issued = authority.issue("CN=broker")
    (tmp_path / "store.pem").write_text(issued.key_pem() + issued.chain_pem)
    (tmp_path / "store.p12").write_bytes(issued.pkcs12("store-secret"))
    (tmp_path / "locked.pem").write_text(issued.key_pem("key-secret") + issued.chain_pem)
    (tmp_path / "junk").write_text("junk")
    return issued


def refusal(tmp_path, *lines):
    (tmp_path / "server.properties").write_text(
        "\n".join(
            [
                f"listeners=SECURE://127.0.0.1:{free_port()}",
                "listener.security.protocol.map=SECURE:SSL",
                *lines,
            ]
        )
    )
    result = barnabas("serve", "server.properties", "-Xbarnabas.http.listener=", cwd=tmp_path)
    assert result.returncode in {1, 2}
    line = error_of(result, result.returncode)
    assert "-secret" not in result.stderr
    assert not (tmp_path / "data").exists()
    return line.removeprefix("barnabas: ").replace(str(tmp_path), "DIR")


WHAT_STOPS_THE_START = {
    (): (
        "listener SECURE: ssl.keystore.location is not set: a listener with TLS needs a private "
        "key and its certificate"
    ),
    ("ssl.keystore.location=missing.pem",): (
        "Invalid value missing.pem for configuration ssl.keystore.location: missing.pem: No such "
        "file or directory (server.properties line 3)"
    ),
    ("x.y=1", "listener.name.secure.ssl.keystore.location=junk"): (
        "Invalid value junk for configuration listener.name.secure.ssl.keystore.location: junk: "
        "neither PEM nor PKCS12 (server.properties line 4)"
    ),
    ("ssl.keystore.location=store.p12", "ssl.keystore.password=wrong-secret"): (
        "Invalid value store.p12 for configuration ssl.keystore.location: the password is wrong, "
        "or the file is not a PKCS12 store (server.properties line 3)"
    ),
    ("ssl.keystore.location=locked.pem", "ssl.key.password=wrong-secret"): (
        "Invalid value [hidden] for configuration ssl.key.password: the private key cannot be "
        "opened by this password (server.properties line 4)"
    ),
    ("ssl.keystore.location=store.pem", "ssl.truststore.location=junk"): (
        "Invalid value junk for configuration ssl.truststore.location: junk: neither PEM nor "
        "PKCS12 (server.properties line 4)"
    ),
    ("ssl.keystore.location=store.pem", "ssl.cipher.suites=TLS_NULL"): (
        "Invalid value TLS_NULL for configuration ssl.cipher.suites: TLS_NULL is not available "
        "(server.properties line 4)"
    ),
    ("ssl.keystore.location=store.pem", "ssl.principal.mapping.rules=RULE:(a/x/"): (
        "Invalid value RULE:(a/x/ for configuration ssl.principal.mapping.rules: Invalid rule: "
        "`(a`: missing ): (a (server.properties line 4)"
    ),
    ("ssl.keystore.location=store.pem", "ssl.engine.factory.class=com.example.Engine"): (
        "Invalid value com.example.Engine for configuration ssl.engine.factory.class: no Java "
        "class can be loaded (server.properties line 4)"
    ),
    ("ssl.keystore.location=store.pem", "ssl.client.auth=maybe"): (
        "Invalid value maybe for configuration ssl.client.auth: String must be one of: required, "
        "requested, none; accepted: one of required, requested, none (server.properties line 4)"
    ),
    (
        "ssl.keystore.location=store.pem",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL",
        "ssl.client.auth=required",
    ): (
        "ssl.client.auth=required has no effect on SASL listener SECURE, as in Apache Kafka; set "
        "listener.name.secure.ssl.client.auth (server.properties line 5)"
    ),
    ("ssl.keystore.location=store.pem", "ssl.enabled.protocols=TLSv1.1,TLSv1.2"): (
        "Invalid value TLSv1.1,TLSv1.2 for configuration ssl.enabled.protocols: String must be one "
        "of: TLSv1.2, TLSv1.3; accepted: any of TLSv1.2, TLSv1.3 (server.properties line 4)"
    ),
    ("ssl.keystore.location=store.pem", "ssl.enabled.protocols=TLSv1.3", "ssl.protocol=TLSv1.2"): (
        "Invalid value TLSv1.3 for configuration ssl.enabled.protocols: none of TLSv1.3 is as old "
        "as ssl.protocol says (server.properties line 4)"
    ),
    ("ssl.keystore.location=store.pem", "ssl.keystore.locatoin=x"): (
        "unknown key ssl.keystore.locatoin, did you mean ssl.keystore.location?"
    ),
}


@pytest.mark.parametrize(
    "lines",
    [case(each, in_test=number % 3 == 0) for number, each in enumerate(WHAT_STOPS_THE_START)],
    ids=lambda lines: " ".join(lines) or "-",
)
def test_tls_mistake_stops_the_start_with_key_and_origin(tmp_path, store, lines):
    assert refusal(tmp_path, *lines) == WHAT_STOPS_THE_START[lines]


def test_a_real_jks(tmp_path):
    path = STORES / "jks.jks"
    line = refusal(tmp_path, f"ssl.keystore.location={path}", "ssl.keystore.password=x")
    assert line.endswith(
        f"{path} is a JKS store, which cannot be read; convert it: keytool -importkeystore "
        f"-srckeystore {path} -srcstoretype JKS -destkeystore {STORES}/jks.p12 "
        "-deststoretype PKCS12 (server.properties line 3)"
    )


def test_keys_of_a_jvm_are_accepted(tmp_path, store):
    options = [
        f"-X{key}"
        for key in (
            "ssl.keystore.location=store.p12",
            "ssl.keymanager.algorithm=PKIX",
            "ssl.trustmanager.algorithm=PKIX",
            "ssl.provider=SunJSSE",
            "ssl.secure.random.implementation=NativePRNG",
            "ssl.endpoint.identification.algorithm=",
        )
    ]
    listener = f",SSL://127.0.0.1:{free_port()}"
    password = {"KAFKA_SSL_KEYSTORE_PASSWORD": "store-secret"}
    with Served(tmp_path, *options, more_listeners=listener, env=password) as broker:
        exit_code, _, stderr = broker.stop()
    assert exit_code == 0
    assert "WARNING" not in stderr
    assert "secret" not in stderr


def test_a_certificate_that_has_expired_does_not_stop_the_start(tmp_path, authority):
    expired = authority.issue(begins=-2 * DAY, ends=-DAY)
    (tmp_path / "store.pem").write_text(expired.key_pem() + expired.chain_pem)
    options = ["-Xssl.keystore.location=store.pem"]
    listener = f",SSL://127.0.0.1:{free_port()}"
    with Served(tmp_path, *options, more_listeners=listener) as broker:
        assert "the certificate has expired listener=SSL at=" in broker.stop()[2]


def test_sighup_reloads(tmp_path, authority, store):
    port = free_port()
    options = ["-Xssl.keystore.location=store.pem"]
    with Served(tmp_path, *options, more_listeners=f",SSL://127.0.0.1:{port}") as broker:

        def comes_to_show(credential):
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                shown = ssl.get_server_certificate(("127.0.0.1", port))
                if ssl.PEM_cert_to_DER_cert(shown) == credential.der:
                    return True
            return False

        assert comes_to_show(store)
        broker.process.send_signal(signal.SIGHUP)  # The next one may come while this is at work.
        renewed = authority.issue("CN=broker")
        (tmp_path / "store.pem").write_text(renewed.key_pem() + renewed.chain_pem)
        broker.process.send_signal(signal.SIGHUP)
        assert comes_to_show(renewed)
        exit_code, _, stderr = broker.stop()
    assert exit_code == 0
    assert stderr.count("certificates reloaded listener=SSL") >= 1
