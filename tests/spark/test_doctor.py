"""The checks of `python -m barnabas.spark doctor`, on real Pythons, packages and brokers."""

import re
import sys
import tomllib
import venv

import pytest

from barnabas.broker.version import __version__
from barnabas.spark_connector import doctor
from barnabas.spark_connector.command import main
from barnabas.spark_connector.worker_python import chosen_python, missing_source_sentence
from barnabas.testing import Broker
from tests.checkout import ROOT
from tests.counterparts.jars import spark_kafka_jars
from tests.counterparts.probe import free_port


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """A Python with nothing installed."""
    directory = tmp_path_factory.mktemp("bare")
    venv.create(directory, with_pip=False)
    return str(directory / "bin" / "python")


@pytest.fixture
def with_module(tmp_path, monkeypatch):
    """Put a module where every Python looks for it."""

    def put(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT / 'src'}")

    return put


@pytest.fixture(autouse=True)
def _jars_and_python(monkeypatch):
    spark_kafka_jars()  # Or says how to get them.
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)


def examined(capsys, *arguments):
    """Return the exit code, and the lines by their first word."""
    code = main(["doctor", *arguments])
    lines = capsys.readouterr().out.splitlines()
    return code, {
        word: [line[5:] for line in lines if line.startswith(word)]
        for word in ("ok", "note", "FAIL")
    }


def test_everything_is_well(capsys):
    code, lines = examined(capsys)
    assert (code, lines["FAIL"], lines["note"]) == (0, [], [])
    python = f"Python of Spark's workers: {sys.executable} (PYSPARK_PYTHON), version "
    assert lines["ok"][0].startswith(python)
    assert f"barnabas {__version__}" in lines["ok"]
    assert "data sources: pyspark_barnabas" in lines["ok"]
    assert [each for each in lines["ok"] if re.match(r"Java (1[7-9]|2\d): /", each)]


def test_a_python_without_packages_fails_and_each_line_says_what_to_do(
    capsys, monkeypatch, bare_python
):
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", bare_python)
    code, lines = examined(capsys)
    assert code == 1
    assert f"{bare_python} (PYSPARK_DRIVER_PYTHON), version" in lines["ok"][0]
    said = "\n".join(lines["FAIL"])
    for package in ("barnabas", "pyspark", "numpy", "pandas", "pyarrow"):
        assert f"{package} cannot be imported by {bare_python}" in said
    assert "pyspark_barnabas is not installed" in said
    assert all(f"run {bare_python} -m pip install" in line for line in lines["FAIL"])


def test_the_python_of_a_setting_is_checked_as_well(capsys, bare_python):
    code, lines = examined(capsys, "--conf", f"spark.pyspark.python={bare_python}")
    assert code == 1
    assert f"{bare_python} (spark.pyspark.python), version" in "\n".join(lines["ok"])


@pytest.mark.parametrize(
    ("command", "problem"),
    [("no-such-python", "no such program"), ("/bin/true", "it runs no Python program")],
)
def test_a_python_that_is_none_fails(capsys, monkeypatch, command, problem):
    monkeypatch.setenv("PYSPARK_PYTHON", command)
    code, lines = examined(capsys)
    assert (code, len(lines["FAIL"])) == (1, 1)
    assert f"{command} (PYSPARK_PYTHON): {problem}" in lines["FAIL"][0]
    assert lines["FAIL"][0].endswith(f"set PYSPARK_PYTHON to {sys.executable}")


def test_a_broken_package_of_data_sources_is_named(capsys, with_module):
    with_module("pyspark_broken", "raise ValueError('no licence')\n")
    code, lines = examined(capsys)
    assert (code, len(lines["FAIL"])) == (1, 1)
    assert lines["FAIL"][0].startswith(
        f"pyspark_broken cannot be imported by {sys.executable} (ValueError: no licence)"
    )


@pytest.mark.parametrize(
    ("module", "version", "wanted"),
    [
        ("numpy", "1.25.2", "numpy>=1.26"),
        ("pandas", "3.0.0", "pandas>=2.2,<3"),
        ("pyarrow", "17.0.0", "pyarrow>=18"),
        ("pyspark", "4.1.0", "pyspark==4.2.0"),
    ],
)
def test_a_version_that_is_not_supported_fails(capsys, with_module, module, version, wanted):
    with_module(module, f"__version__ = {version!r}\n")
    code, lines = examined(capsys)
    assert code == 1
    (line,) = [each for each in lines["FAIL"] if each.startswith(f"{module} {version}")]
    assert f"{sys.executable} -m pip install" in line
    assert wanted in line


def test_the_versions_are_those_of_the_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = project["optional-dependencies"]["spark"]
    for name, (oldest, too_new) in doctor.VERSIONS.items():
        below = f",<{doctor._dotted(too_new)}" if too_new else ""
        assert f"{name}>={doctor._dotted(oldest)}{below}" in extra
    assert project["requires-python"] == f">={doctor._dotted(doctor.OLDEST_PYTHON)}"


# ------------------------------------------------------------------------------------------ brokers


@pytest.mark.parametrize("is_on", [True, False])
def test_a_broker_and_its_two_phase_commit(capsys, is_on):
    with Broker(config={doctor.TWO_PHASE_SETTING: str(is_on).lower()}) as broker:
        servers = broker.bootstrap_servers
        code, lines = examined(capsys, "--servers", servers)
    assert (code, lines["FAIL"]) == (0, [])
    assert f"brokers: {servers}" in lines["ok"]
    assert ("two-phase commit (KIP-939): offered" in lines["ok"]) == is_on
    assert bool(lines["note"]) != is_on
    if lines["note"]:
        assert "-X transaction.two.phase.commit.enable=true" in lines["note"][0]


def test_brokers_that_cannot_be_reached_or_are_no_address_fail(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "TIMEOUT_MS", 300)
    for servers, sentence in (
        (f"127.0.0.1:{free_port()}", "Connection refused"),
        ("localhost", "--servers has the address 'localhost'; write it as host:port"),
    ):
        code, lines = examined(capsys, "--servers", servers)
        assert (code, len(lines["FAIL"])) == (1, 1)
        assert sentence in lines["FAIL"][0]


# ---------------------------------------------------------------------------------------- sentences


def test_spark_takes_the_python_of_its_driver_first():
    both = {"PYSPARK_DRIVER_PYTHON": "a", "PYSPARK_PYTHON": "b"}
    assert chosen_python(both) == ("a", "PYSPARK_DRIVER_PYTHON")
    assert chosen_python({"PYSPARK_PYTHON": "b"}) == ("b", "PYSPARK_PYTHON")
    assert chosen_python({}) == ("python3", "python3 of the PATH")


def test_a_data_source_that_is_unknown_everywhere(monkeypatch):
    assert missing_source_sentence("orders").startswith(
        f"Spark has not found the data source orders: no package pyspark_* of {sys.executable}"
    )
    monkeypatch.setenv("PYSPARK_PYTHON", "no-such-python")
    assert "no-such-python (PYSPARK_PYTHON), the Python of its workers, cannot be used" in (
        missing_source_sentence("orders")
    )
