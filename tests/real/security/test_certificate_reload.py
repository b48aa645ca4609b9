"""Certificates replaced in a running broker: by their files, and by clients."""

import os
import socket
import ssl
import time

import pytest

from barnabas.broker.client.wire_client import WireClient
from barnabas.broker.config.types import ConfigError
from barnabas.broker.metrics.own import serving_families
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.incremental_alter_configs import INCREMENTAL_ALTER_CONFIGS
from barnabas.testing import Broker
from tests.broker.tls.handshakes import anyone
from tests.certificates import DAY, Authority
from tests.requests import alter_configs_request

LOCATION = "listener.name.secure.ssl.keystore.location"
SET, DELETE = 0, 1
API_VERSIONS_REQUEST = bytes.fromhex("0000000e 0012 0000 00000001 0004 74657374")
BROKER = 4


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture
def first(authority):
    return authority.issue("CN=broker")


class Running:
    """A broker with a listener for TLS, and what its clients see."""

    def __init__(self, directory, credential, storage=None, **config):
        self.path = directory / "store.pem"
        self.write(credential)
        self.broker = Broker(
            storage=storage,
            config={
                "listeners": "PLAINTEXT://127.0.0.1:0,SECURE://127.0.0.1:0",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SSL",
                "ssl.keystore.location": str(self.path),
            }
            | config,
        )

    def __enter__(self):
        self.broker.__enter__()
        return self

    def __exit__(self, *arguments):
        self.broker.__exit__(*arguments)

    def write(self, credential, path=None):
        is_text = isinstance(credential, str)
        text = credential if is_text else credential.key_pem() + credential.chain_pem
        path = path or self.path
        # Atomically, as tools do: a reload would find half a file, and log an error.
        beside = path.with_suffix(".new")
        beside.write_text(text)
        beside.replace(path)

    @property
    def tls(self):
        (tls,) = self.broker.server.sockets.tls_listeners
        return tls

    def shown(self) -> bytes:
        """The certificate that a new connection is shown, in DER."""
        address = self.broker.server.listeners[1].bound
        return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(address))

    def comes_to_show(self, credential) -> bool:
        """Return whether the certificate is shown soon; the broker's timers are made to fire."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            self.broker.clock.advance(seconds=10)
            if self.shown() == credential.der:
                return True
            time.sleep(0.01)
        return False

    def comes_to_fail(self, part: str) -> bool:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            self.broker.clock.advance(seconds=10)
            if part in (self.tls.problem or ""):
                return True
            time.sleep(0.01)
        return False

    def alter(self, *changes, node="1", validate_only=False):
        request = alter_configs_request(BROKER, node, *changes, validate_only=validate_only)
        with WireClient(self.broker.address, "test", 20) as client:
            (answer,) = client.ask(INCREMENTAL_ALTER_CONFIGS, request, 1).responses
        return answer.error_code, answer.error_message

    def described(self):
        resource = DescribeConfigsResource(BROKER, "1", None)
        request = DescribeConfigsRequest([resource], include_synonyms=True)
        with WireClient(self.broker.address, "test", 20) as client:
            (answer,) = client.ask(DESCRIBE_CONFIGS, request, 4).results
        return {each.name: each for each in answer.configs}


@pytest.fixture
def running(tmp_path, first):
    with Running(tmp_path, first) as running:
        yield running


# -------------------------------------------------------------------------------------------- files


def test_a_file_that_changes_is_read_again(running, authority, caplog):
    caplog.set_level("INFO")
    renewed = authority.issue("CN=broker")
    running.write(renewed)
    assert running.comes_to_show(renewed)
    assert "certificates reloaded listener=SECURE subject=CN=broker not_after=" in caplog.text


def test_open_connections_survive_certificate_reload(running, authority):
    plain = socket.create_connection(running.broker.server.listeners[1].bound)
    with anyone().wrap_socket(plain) as connection:
        renewed = authority.issue("CN=broker")
        running.write(renewed)
        assert running.comes_to_show(renewed)
        connection.sendall(API_VERSIONS_REQUEST)
        assert len(connection.recv(1000)) > 100


def test_a_link_that_leads_elsewhere(tmp_path, authority, first):
    """A link ..data leads to a directory that is new each time, as in Kubernetes."""
    renewed = authority.issue("CN=broker")
    for number, credential in enumerate((first, renewed)):
        (tmp_path / f"v{number}").mkdir()
        (tmp_path / f"v{number}" / "store.pem").write_text(
            credential.key_pem() + credential.chain_pem
        )
        os.utime(tmp_path / f"v{number}" / "store.pem", (1, 1))
    (tmp_path / "..data").symlink_to("v0")
    (tmp_path / "link.pem").symlink_to("..data/store.pem")
    location = {"ssl.keystore.location": str(tmp_path / "link.pem")}
    with Running(tmp_path, first, **location) as running:
        assert running.shown() == first.der
        (tmp_path / "new").symlink_to("v1")
        (tmp_path / "new").rename(tmp_path / "..data")
        assert running.comes_to_show(renewed)


def bad_files(authority, first):
    return {
        "neither PEM nor PKCS12": "",
        "exactly one private key": first.chain_pem,
        "does not belong to the certificate": authority.issue().key_pem() + first.chain_pem,
        "DistinguishedName does not match: existing=CN=broker, new=CN=other": authority.issue(
            "CN=other"
        ),
        "SubjectAltNames do not match: existing=['127.0.0.1', '::1', 'localhost'], new=['::1']": (
            authority.issue("CN=broker", hosts=("::1",))
        ),
        "the certificate has expired at": authority.issue("CN=broker", begins=-2 * DAY, ends=-DAY),
        "the certificate is not valid before": authority.issue(
            "CN=broker", begins=DAY, ends=2 * DAY
        ),
    }


def test_a_file_that_cannot_be_used_changes_nothing_but_the_metric(
    running, authority, first, caplog
):
    for reason, content in bad_files(authority, first).items():
        running.write(content)
        assert running.comes_to_fail(reason), reason
        assert running.shown() == first.der
    lines = [each.message for each in caplog.records if "not reloaded" in each.message]
    assert len(lines) == len(bad_files(authority, first))
    assert lines[0].startswith(
        "certificates not reloaded, the old ones stay listener=SECURE "
        "reason=ssl.keystore.location: "
    )
    assert families(running)["barnabas_tls_certificate_reload_failed"] == 1
    renewed = authority.issue("CN=broker")
    running.write(renewed)
    assert running.comes_to_show(renewed)
    found = families(running)
    assert found["barnabas_tls_certificate_reload_failed"] == 0
    end = renewed.certificate.not_valid_after_utc.timestamp()
    assert found["barnabas_tls_certificate_not_after_seconds"] == end


def families(running):
    server = running.broker.server
    return {
        family.name: sum(number for _, number in family.samples)
        for family in serving_families(server.loop_monitor, server.sockets)
        if "_tls_" in family.name
    }


def test_same_certificate_file_is_loaded_again_after_removal(running, first):
    content = running.path.read_text()
    running.path.unlink()
    assert running.comes_to_fail("No such file")
    running.write(content)
    assert running.comes_to_show(first)
    deadline = time.monotonic() + 60
    while running.tls.problem and time.monotonic() < deadline:
        running.broker.clock.advance(seconds=10)
    assert running.tls.problem is None


def test_other_names_where_they_are_allowed(tmp_path, authority, first):
    allowed = {
        "ssl.allow.dn.changes": "true",
        "listener.name.secure.ssl.allow.san.changes": "true",
    }
    with Running(tmp_path, first, **allowed) as running:
        other = authority.issue("CN=other", hosts=("x.example",))
        running.write(other)
        assert running.comes_to_show(other)


def test_handshakes_are_counted(running):
    plain = socket.create_connection(running.broker.server.listeners[1].bound)
    with anyone().wrap_socket(plain) as connection:
        connection.sendall(API_VERSIONS_REQUEST)
        assert len(connection.recv(1000)) > 100
        found = families(running)
    assert found["barnabas_tls_handshakes_total"] == 1
    assert found["barnabas_tls_handshakes"] == 0


# ------------------------------------------------------------------------------------------ clients


def test_a_client_names_another_file(running, authority, tmp_path):
    renewed = authority.issue("CN=broker")
    running.write(renewed, tmp_path / "other.pem")
    change = (LOCATION, SET, str(tmp_path / "other.pem"))
    assert running.alter(change, validate_only=True) == (0, None)
    assert running.shown() != renewed.der
    assert running.alter(change) == (0, None)
    assert running.shown() == renewed.der
    entry = running.described()[LOCATION]
    assert (entry.value, entry.read_only) == (str(tmp_path / "other.pem"), False)
    assert [(each.name, each.source) for each in entry.synonyms] == [
        (LOCATION, 2),
        ("ssl.keystore.location", 4),
    ]
    assert running.alter((LOCATION, DELETE, None)) == (0, None)
    assert running.shown() != renewed.der


def test_the_same_file_again_is_a_reload(running, authority):
    change = (LOCATION, SET, str(running.path))
    assert running.alter(change) == (0, None)
    renewed = authority.issue("CN=broker")
    running.write(renewed)
    assert running.alter(change) == (0, None)
    assert running.shown() == renewed.der
    running.write(authority.issue("CN=other"))
    code, message = running.alter(change)
    assert code == ErrorCode.INVALID_REQUEST
    assert "DistinguishedName does not match" in message
    assert running.shown() == renewed.der


def test_bad_files_of_a_listener_do_not_stand_in_the_way_of_other_settings(running):
    assert running.alter((LOCATION, SET, str(running.path))) == (0, None)
    running.write("")
    assert running.alter(("message.max.bytes", SET, "2000000")) == (0, None)


def test_pem_in_the_request_itself(running, authority):
    renewed = authority.issue("CN=broker")
    changes = [
        ("listener.name.secure.ssl.keystore.key", SET, renewed.key_pem("pw")),
        ("listener.name.secure.ssl.key.password", SET, "pw"),
        ("listener.name.secure.ssl.keystore.certificate.chain", SET, renewed.chain_pem),
        ("listener.name.secure.ssl.keystore.type", SET, "PEM"),
    ]
    code, message = running.alter(*changes)
    assert code == ErrorCode.INVALID_REQUEST
    assert "Both SSL key store location and separate private key are specified" in message
    assert "PRIVATE" not in message
    assert running.alter(*changes, (LOCATION, SET, "")) == (0, None)
    assert running.shown() == renewed.der
    entry = running.described()["listener.name.secure.ssl.keystore.key"]
    assert (entry.value, entry.is_sensitive, entry.synonyms[0].value) == (None, True, None)


def test_store_set_by_client_is_used_after_restart(tmp_path, authority, first):
    renewed = authority.issue("CN=broker")
    with Running(tmp_path, first, storage=tmp_path / "data") as running:
        other = tmp_path / "other.pem"
        running.write(renewed, other)
        assert running.alter((LOCATION, SET, str(other))) == (0, None)
        running.broker.restart()
        assert running.shown() == renewed.der
        running.broker.stop()
        other.write_text("")
        with pytest.raises(ConfigError, match="neither PEM nor PKCS12"):
            running.broker.restart()
        running.write(renewed, other)
        running.broker.restart()


@pytest.mark.parametrize("provider", ["env", "file", "dir"])
def test_setting_by_client_does_not_use_config_provider_cve_2024_31141(
    tmp_path, first, monkeypatch, provider
):
    """A client that may alter settings must not read files and variables of the broker."""
    (tmp_path / "secret").write_text("key=hunter2")
    monkeypatch.setenv("SECRET", "hunter2")
    kind = {"env": "EnvVar", "file": "File", "dir": "Directory"}[provider]
    config = {
        "config.providers": provider,
        f"config.providers.{provider}.class": (
            f"org.apache.kafka.common.config.provider.{kind}ConfigProvider"
        ),
    }
    reference = {
        "env": "${env:SECRET}",
        "file": f"${{file:{tmp_path}/secret:key}}",
        "dir": f"${{dir:{tmp_path}:secret}}",
    }[provider]
    with Running(tmp_path, first, **config) as running:
        code, message = running.alter((LOCATION, SET, reference))
        assert code == ErrorCode.INVALID_REQUEST
        assert reference in message
        assert "hunter2" not in message
        assert running.shown() == first.der


FIXED = "Cannot update these configs dynamically: "
REFUSED = {
    ("ssl.keystore.location", "x"): (
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix: [ssl.keystore.location]"
    ),
    ("listener.name.secure.ssl.client.auth", "required"): (
        f"{FIXED}[listener.name.secure.ssl.client.auth]; who is asked for a certificate is settled "
        "when the broker starts"
    ),
    ("listener.name.secure.plain.sasl.jaas.config", "x"): (
        f"{FIXED}[listener.name.secure.plain.sasl.jaas.config]"
    ),
    ("listener.name.secure.max.connections", "5"): (
        f"{FIXED}[listener.name.secure.max.connections]"
    ),
    ("listener.name.other.ssl.keystore.location", "x"): (
        "listener.name.other.ssl.keystore.location: there is no such listener, only PLAINTEXT, "
        "SECURE"
    ),
    ("listener.name.plaintext.ssl.keystore.location", "x"): (
        "listener.name.plaintext.ssl.keystore.location: the listener has no TLS"
    ),
    ("listener.name.secure.ssl.keystore.type", "BKS"): (
        "Invalid value BKS for configuration listener.name.secure.ssl.keystore.type: Value must be "
        "one of JKS, PKCS12, PEM"
    ),
    ("listener.name.secure.ssl.cipher.suites", "NULL"): (
        "Invalid value NULL for configuration listener.name.secure.ssl.cipher.suites: NULL is not "
        "available (a client)"
    ),
}


@pytest.mark.parametrize("change", REFUSED)
def test_static_tls_settings_cannot_be_changed_by_clients(running, first, change):
    name, value = change
    expected = ErrorCode.INVALID_REQUEST, REFUSED[change]
    assert running.alter((name, SET, value)) == expected
    assert running.shown() == first.der


def test_nothing_of_it_can_be_set_for_the_whole_cluster(running):
    code, message = running.alter((LOCATION, SET, str(running.path)), node="")
    assert code == ErrorCode.INVALID_REQUEST
    assert message == (
        "Cannot update these configs at default cluster level, broker id must be specified: "
        f"[{LOCATION}]"
    )


def test_suites_and_versions_change_too(running):
    changes = [
        ("listener.name.secure.ssl.enabled.protocols", SET, "TLSv1.2"),
        (
            "listener.name.secure.ssl.cipher.suites",
            SET,
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        ),
    ]
    assert running.alter(*changes) == (0, None)

    plain = socket.create_connection(running.broker.server.listeners[1].bound)
    with anyone().wrap_socket(plain) as connection:
        assert connection.cipher()[:2] == ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2")
