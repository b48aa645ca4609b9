import json
import os
import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from barnabas.broker.cli.configuration import read_properties
from barnabas.broker.config.loading.loader import load_config
from tests.real.cli.command import barnabas, error_of

SECRET = {
    "ca.key",
    "broker.pem",
    "server.properties",
    "eve.properties",
    "eve.librdkafka",
    "eve.json",
}
CLIENTS = {"java": "properties", "librdkafka": "librdkafka", "kafka-python": "json"}


def properties(path):
    return {each.key: each.value for each in read_properties(str(path))}


@pytest.fixture
def made(tmp_path):
    result = barnabas("init", "--secure", "there/secure", "--user", "eve", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    return tmp_path / "there" / "secure", result.stdout


def test_secrets_are_readable_by_their_owner_only(made):
    directory, _ = made
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in directory.iterdir()}
    assert modes == dict.fromkeys(SECRET, 0o600) | {"ca.pem": 0o644}
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_the_settings_hold_and_protect(made):
    directory, _ = made
    loaded = load_config(read_properties(str(directory / "server.properties")))
    assert (loaded.ignored, loaded.unknown) == ((), ())
    config = loaded.config
    assert [(each.host, each.port) for each in config.endpoints] == [("localhost", 9092)]
    assert config.super_users == "User:eve"
    assert config.data_directory == str(directory / "data")
    assert config.authorizer_class_name.endswith("StandardAuthorizer")


def test_settings_of_all_clients_agree(made):
    directory, _ = made
    java, librdkafka = (
        properties(directory / "eve.properties"),
        properties(directory / "eve.librdkafka"),
    )
    python = json.loads((directory / "eve.json").read_text())
    password = python["sasl_plain_password"]
    assert len(password) == 32
    assert librdkafka["sasl.password"] == password
    assert f'password="{password}"' in java["sasl.jaas.config"]
    assert password not in (directory / "server.properties").read_text()
    trusted = {java["ssl.truststore.location"], librdkafka["ssl.ca.location"], python["ssl_cafile"]}
    assert trusted == {str(directory / "ca.pem")}
    for settings in (java, librdkafka):
        assert settings["security.protocol"] == python["security_protocol"] == "SASL_SSL"
        assert settings["sasl.mechanism"] == python["sasl_mechanism"] == "SCRAM-SHA-512"


def test_nothing_secret_is_printed(made):
    directory, printed = made
    password = json.loads((directory / "eve.json").read_text())["sasl_plain_password"]
    assert password not in printed
    assert "PRIVATE KEY" not in printed
    assert {f"{directory}/eve.{suffix}" in printed for suffix in CLIENTS.values()} == {True}
    assert f"barnabas serve {directory}/server.properties" in printed


def test_every_run_makes_other_secrets(tmp_path):
    for name in ("a", "b"):
        assert barnabas("init", "--secure", name, cwd=tmp_path).returncode == 0
    for name in ("ca.key", "ca.pem", "broker.pem", "admin.json"):
        assert (tmp_path / "a" / name).read_text() != (tmp_path / "b" / name).read_text()


def test_names_that_clients_call_it(tmp_path):
    words = ("--host", "broker.example", "--host", "10.1.2.3", "--port", "19092")
    printed = barnabas("init", "--secure", "d", *words, "--format", "json", cwd=tmp_path).stdout
    directory = tmp_path / "d"
    assert json.loads(printed) == {
        "changed": True,
        "server": f"{directory}/server.properties",
        "clients": {kind: f"{directory}/admin.{suffix}" for kind, suffix in CLIENTS.items()},
    }
    settings = properties(directory / "server.properties")
    assert settings["listeners"] == "SASL_SSL://:19092"
    assert settings["advertised.listeners"] == "SASL_SSL://broker.example:19092"
    assert properties(directory / "admin.properties")["bootstrap.servers"] == "broker.example:19092"
    pem = (directory / "broker.pem").read_bytes()
    certificate = x509.load_pem_x509_certificate(pem[pem.index(b"-----BEGIN CERT") :])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["broker.example", "localhost"]
    assert list(map(str, names.get_values_for_type(x509.IPAddress))) == [
        *("10.1.2.3", "127.0.0.1", "::1")
    ]
    assert certificate.not_valid_after_utc > datetime.now(UTC) + timedelta(days=700)


def test_nothing_is_overwritten(made):
    directory, _ = made
    before = {each.name: each.read_bytes() for each in directory.iterdir()}
    again = barnabas("init", "--secure", directory, cwd=directory)
    assert error_of(again, 2) == f"barnabas: {directory}: exists already, and is not empty"
    again = barnabas("init", "--secure", directory, "--if-not-exists", cwd=directory)
    assert (again.returncode, again.stdout) == (
        0,
        f"{directory} is set up already; no change was made\n",
    )
    assert {each.name: each.read_bytes() for each in directory.iterdir()} == before


def test_a_directory_of_something_else(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "notes").touch()
    for words in ((), ("--if-not-exists",)):
        assert "not empty" in error_of(barnabas("init", "--secure", "d", *words, cwd=tmp_path), 2)
    (tmp_path / "file").touch()
    assert "not empty" in error_of(barnabas("init", "--secure", "file", cwd=tmp_path), 2)
    assert os.listdir(tmp_path / "d") == ["notes"]


def test_an_empty_directory_is_taken(tmp_path):
    (tmp_path / "d").mkdir(0o755)
    assert barnabas("init", "--secure", "d", cwd=tmp_path).returncode == 0
    assert (tmp_path / "d" / "ca.pem").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("d",), "one of the arguments --secure --renew is required"),
        (("--secure",), "required: DIRECTORY"),
        (("--secure", "d", "--host", "a/b"), "a/b is no name or address of a host"),
        (("--secure", "d", "--user", 'a"b'), "a name has up to 64 letters"),
        (("--secure", "d", "--port", "0"), "0 is not between 1 and 65535"),
        (("--secure", "a\nb"), "the name of the directory has characters that"),
        (("--secure", "/proc/none"), "/proc/none: No such file or directory"),
    ],
)
def test_impossible_options_are_rejected(tmp_path, words, expected):
    result = barnabas("init", *words, cwd=tmp_path)
    assert expected in error_of(result, 1 if "/proc/none" in words else 2)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777, 0o1777])
def test_a_directory_that_others_can_write_to_is_refused(tmp_path, mode):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    error = error_of(barnabas("init", "--secure", "open", cwd=tmp_path), 2)
    assert "open: users other than its owner can write to it" in error
    assert list((tmp_path / "open").iterdir()) == []
