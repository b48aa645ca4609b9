"""``barnabas init --renew``: another certificate, which clients take and a running broker shows."""

import json
import signal
import socket
import ssl
import stat
import time

import pytest
from cryptography import x509

from tests.real.cli.command import Served, barnabas, error_of, free_port


@pytest.fixture
def made(tmp_path):
    words = ("--host", "broker.example", "--host", "10.1.2.3")
    assert barnabas("init", "--secure", "d", *words, cwd=tmp_path).returncode == 0
    return tmp_path / "d"


def certificate(directory):
    return x509.load_pem_x509_certificates((directory / "broker.pem").read_bytes())[0]


def names(found):
    return list(found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)


def contents(directory):
    return {each.name: each.read_bytes() for each in directory.iterdir()}


def test_the_same_names_with_another_key(made, tmp_path):
    before, kept = certificate(made), contents(made)
    (made / "ca.key").rename(tmp_path / "safe")
    words = ("--ca-key", "safe", "--host", "also.example", "--format", "json")
    result = barnabas("init", "--renew", "d", *words, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    after = certificate(made)
    ends = f"{after.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}"
    path = str(made / "broker.pem")
    assert json.loads(result.stdout) == {"changed": True, "certificate": path, "valid_until": ends}
    assert (after.subject, after.issuer) == (before.subject, before.issuer)
    assert after.public_key() != before.public_key()
    assert set(names(after)) == {*names(before), x509.DNSName("also.example")}
    assert stat.S_IMODE((made / "broker.pem").stat().st_mode) == 0o600
    del kept["ca.key"], kept["broker.pem"]
    now = contents(made)
    assert now.pop("broker.pem")
    assert now == kept


def test_a_running_broker_shows_it_to_clients_that_trust_the_authority(made, tmp_path):
    port = free_port()
    options = ["-Xssl.keystore.type=PEM", f"-Xssl.keystore.location={made / 'broker.pem'}"]
    context = ssl.create_default_context(cafile=made / "ca.pem")

    def shown():
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as secured,
        ):
            return x509.load_der_x509_certificate(secured.getpeercert(binary_form=True))

    with Served(tmp_path, *options, more_listeners=f",SSL://127.0.0.1:{port}") as broker:
        before = shown()
        assert barnabas("init", "--renew", "d", cwd=tmp_path).returncode == 0
        assert certificate(made) != before
        broker.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 60
        while shown() != certificate(made):
            assert time.monotonic() < deadline
        assert broker.stop()[0] == 0


def test_impossible_renewal_is_rejected(made, tmp_path):
    assert barnabas("init", "--secure", "other", cwd=tmp_path).returncode == 0
    before = contents(made)
    for words, code, expected in (
        (("--renew", "nowhere"), 2, "broker.pem: No such file or directory"),
        (("--renew", "d", "--ca-key", "none"), 2, "none: No such file or directory"),
        (("--renew", "d", "--ca-key", "other/ca.key"), 2, "not that of the certificate"),
        (("--renew", "d", "--ca-key", "d/ca.pem"), 2, "no unencrypted private key"),
        (("--renew", "d", "--user", "eve"), 2, "--renew changes the certificate only"),
        (("--renew", "--secure", "d"), 2, "not allowed with argument"),
        (("--secure", "e", "--ca-key", "x"), 2, "--ca-key is for --renew"),
    ):
        assert expected in error_of(barnabas("init", *words, cwd=tmp_path), code), words
    assert contents(made) == before
    (made / "broker.pem").write_bytes((tmp_path / "other" / "broker.pem").read_bytes())
    error = error_of(barnabas("init", "--renew", "d", cwd=tmp_path), 1)
    assert error.endswith("the certificate is not signed by this authority")
