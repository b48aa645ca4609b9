"""The checks of `python -m barnabas.spark doctor`, on real Pythons, packages and brokers."""

import os
import re
import sys
import tomllib
import venv

import pytest

from barnabas.broker.version import __version__
from barnabas.spark_connector.failures import worker_python
from barnabas.spark_connector.failures.worker_python import (
    chosen_python,
    missing_source_sentence,
    task_python,
)
from barnabas.spark_connector.running import doctor
from barnabas.spark_connector.running.command import main
from barnabas.testing import Broker
from tests.checkout import ROOT
from tests.counterparts.jars import spark_kafka_jars
from tests.counterparts.java import java_home
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


@pytest.fixture(autouse=True, scope="module")
def _each_good_python_is_probed_once():
    """Keep the report of a Python that has all packages: importing them takes long."""
    run_probe, reports = worker_python._run_probe, {}

    def run(command, report, errors):
        key = (*command, os.environ.get("PYTHONPATH"))
        if key in reports:
            report.write(reports[key])
            return 0
        code = run_probe(command, report, errors)
        if code == 0:
            report.seek(0)
            reports[key] = report.read()
        return code

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_python, "_run_probe", run)
        yield


@pytest.fixture(autouse=True)
def _jars_and_python(monkeypatch):
    spark_kafka_jars()  # Or says how to get them.
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    monkeypatch.setenv("JAVA_HOME", str(java_home()))
    monkeypatch.delenv("BARNABAS_SERVERS", raising=False)


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
    assert (code, lines["FAIL"]) == (0, [])
    not_checked = "brokers: not checked; name them with --servers or BARNABAS_SERVERS"
    assert lines["note"] == [not_checked]
    python = f"Python of data sources and tasks: {sys.executable} (PYSPARK_PYTHON), version "
    assert lines["ok"][0].startswith(python)
    assert f"barnabas {__version__}" in lines["ok"]
    assert "data sources: pyspark_barnabas" in lines["ok"]
    assert [each for each in lines["ok"] if re.match(r"Java (1[7-9]|2\d): /", each)]


ADVICE = "install the wheel of Barnabas with its extra spark there"


def test_python_without_packages_fails_in_one_line_with_one_remedy(
    capsys, monkeypatch, bare_python
):
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", bare_python)
    code, lines = examined(capsys)
    assert code == 1
    python = f"Python of data sources: {bare_python} (PYSPARK_DRIVER_PYTHON), version"
    assert lines["ok"][0].startswith(python)
    (line,) = lines["FAIL"]
    assert line == (
        f"{bare_python} cannot import barnabas, pyspark, numpy, pandas, pyarrow, pyspark_barnabas;"
        f" unset PYSPARK_DRIVER_PYTHON, or set it to {sys.executable}, or {ADVICE}"
    )


def test_python_of_tasks_without_packages_fails(capsys, monkeypatch, bare_python):
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
    monkeypatch.setenv("PYSPARK_PYTHON", bare_python)
    code, lines = examined(capsys)
    assert code == 1
    pythons = [each.rpartition(",")[0] for each in lines["ok"] if each.startswith("Python of ")]
    assert pythons == [
        f"Python of data sources: {sys.executable} (PYSPARK_DRIVER_PYTHON)",
        f"Python of tasks: {bare_python} (PYSPARK_PYTHON)",
    ]
    # Spark imports the packages pyspark_* for its data sources only.
    (line,) = lines["FAIL"]
    assert line == (
        f"{bare_python} cannot import barnabas, pyspark, numpy, pandas, pyarrow; set"
        f" PYSPARK_PYTHON to {sys.executable}, or {ADVICE}"
    )


def test_python_of_both_variables_is_probed_once(capsys, monkeypatch, bare_python):
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", bare_python)
    monkeypatch.setenv("PYSPARK_PYTHON", bare_python)
    _, lines = examined(capsys)
    (line,) = lines["FAIL"]
    assert f"; set PYSPARK_DRIVER_PYTHON and PYSPARK_PYTHON to {sys.executable}, or" in line


def test_python_of_the_setting_is_that_of_tasks(capsys, bare_python):
    code, lines = examined(capsys, "--conf", f"spark.pyspark.python={bare_python}")
    assert code == 1
    said = "\n".join(lines["ok"])
    assert f"Python of data sources: {sys.executable} (PYSPARK_PYTHON), version" in said
    assert f"Python of tasks: {bare_python} (spark.pyspark.python), version" in said
    (line,) = lines["FAIL"]
    assert f"; set spark.pyspark.python to {sys.executable}, or" in line


@pytest.mark.parametrize(
    ("variable", "remedy"),
    [
        ("PYSPARK_DRIVER_PYTHON", "unset PYSPARK_DRIVER_PYTHON, or set it to "),
        ("PYSPARK_PYTHON", "set PYSPARK_PYTHON to "),
    ],
)
@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("no-such-python", "no such program"),
        ("/usr", "a directory, not a program"),
        ("/etc/passwd", "a file that cannot be executed"),
        (
            "/bin/true",
            "it runs no Python program: Python ended with exit code 0 and no output",
        ),
    ],
)
def test_command_that_is_no_python_fails_with_its_variable(
    capsys, monkeypatch, command, problem, variable, remedy
):
    monkeypatch.setenv(variable, command)
    code, lines = examined(capsys)
    assert (code, len(lines["FAIL"])) == (1, 1)
    assert lines["FAIL"][0].endswith(f"{command} ({variable}): {problem}; {remedy}{sys.executable}")


@pytest.fixture
def import_timeout(monkeypatch):
    monkeypatch.setattr(worker_python, "IMPORT_TIMEOUT_S", 5.0)


@pytest.mark.usefixtures("import_timeout")
def test_package_with_endless_import_is_named_and_its_python_killed(
    capsys, monkeypatch, bare_python, tmp_path
):
    (tmp_path / "pyspark_slow.py").write_text(
        "import os, pathlib, time\n"
        "print('loading', flush=True)\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
        "while True: time.sleep(1)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", bare_python)
    code, lines = examined(capsys)
    assert code == 1
    missing, slow = lines["FAIL"]
    assert missing.startswith(f"{bare_python} cannot import barnabas, pyspark, numpy,")
    assert slow.startswith(
        f"pyspark_slow cannot be imported by {bare_python} (no end within 5 s in its import)"
    )
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.usefixtures("import_timeout")
def test_python_that_does_not_start_fails(capsys, monkeypatch, tmp_path):
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nsleep 600\n")
    script.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(script))
    code, lines = examined(capsys)
    assert (code, len(lines["FAIL"])) == (1, 1)
    assert "it runs no Python program: no end within 5 s and no output; set" in lines["FAIL"][0]


def test_package_that_ends_its_python_is_named(capsys, with_module):
    with_module("pyspark_ending", "import os\nos._exit(7)\n")
    code, lines = examined(capsys)
    assert (code, len(lines["FAIL"])) == (1, 1)
    assert lines["FAIL"][0].startswith(
        f"pyspark_ending cannot be imported by {sys.executable} (Python ended with exit code 7 in"
    )


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


def test_another_version_of_barnabas_needs_the_wheel_and_no_index(capsys, monkeypatch, tmp_path):
    (tmp_path / "barnabas").mkdir()
    (tmp_path / "barnabas" / "__init__.py").write_text("__version__ = '0.0.1'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    code, lines = examined(capsys)
    assert code == 1
    (line,) = [each for each in lines["FAIL"] if each.startswith("barnabas 0.0.1 in ")]
    assert line.endswith(f"; install the wheel of Barnabas {__version__} there")
    assert "pip" not in line


def test_the_versions_are_those_of_the_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = project["optional-dependencies"]["spark"]
    for name, (oldest, too_new) in doctor.VERSIONS.items():
        below = f",<{doctor._dotted(too_new)}" if too_new else ""
        assert f"{name}>={doctor._dotted(oldest)}{below}" in extra
    assert project["requires-python"] == f">={doctor._dotted(doctor.OLDEST_PYTHON)}"


# --------------------------------------------------------------------------------------------- Java


def test_java_home_without_java_fails_though_java_is_elsewhere(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, lines = examined(capsys)
    assert (code, len(lines["FAIL"])) == (1, 1)
    assert lines["FAIL"][0] == (
        f"Java: JAVA_HOME={tmp_path} has no bin/java that runs, and spark-submit uses no other; set"
        f" JAVA_HOME={java_home()}"
    )


def test_java_home_with_an_old_java_fails(capsys, monkeypatch, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, lines = examined(capsys)
    assert (code, len(lines["FAIL"])) == (1, 1)
    assert lines["FAIL"][0].startswith(f"Java: JAVA_HOME={tmp_path} is Java 11, and spark-submit")


def test_java_found_by_spark_submit_only_with_java_home_is_noted(capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    code, lines = examined(capsys)
    assert (code, lines["FAIL"]) == (0, [])
    home = java_home()
    assert lines["note"][0].endswith(
        f": {home}, but the PATH has none; spark-submit and spark-pipelines need JAVA_HOME={home}"
    )


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


def test_brokers_of_the_variable_are_checked(capsys, monkeypatch):
    with Broker() as broker:
        servers = broker.bootstrap_servers
        monkeypatch.setenv("BARNABAS_SERVERS", servers)
        code, lines = examined(capsys)
    assert (code, lines["FAIL"]) == (0, [])
    assert f"brokers: {servers}" in lines["ok"]
    monkeypatch.setenv("BARNABAS_SERVERS", "localhost")
    assert "BARNABAS_SERVERS has the address 'localhost'" in examined(capsys)[1]["FAIL"][0]


def test_unreachable_brokers_and_wrong_addresses_fail(capsys, monkeypatch):
    assert doctor.TIMEOUT_MS == 5_000
    monkeypatch.setattr(doctor, "TIMEOUT_MS", 300)
    servers = f"127.0.0.1:{free_port()}"
    code, lines = examined(capsys, "--servers", servers)
    assert (code, len(lines["FAIL"])) == (1, 1)
    assert lines["FAIL"][0] == (
        f"brokers: {servers} sent no response within 0.3 s (Connecting: {servers}: Connection"
        " refused); check the address, and that the broker is running"
    )
    code, lines = examined(capsys, "--servers", "localhost")
    assert code == 1
    sentence = "--servers has the address 'localhost'; write it as host:port"
    assert sentence in lines["FAIL"][0]


# ---------------------------------------------------------------------------------------- sentences


def test_spark_takes_the_python_of_its_driver_first_but_not_for_tasks():
    both = {"PYSPARK_DRIVER_PYTHON": "a", "PYSPARK_PYTHON": "b"}
    assert chosen_python(both) == ("a", "PYSPARK_DRIVER_PYTHON")
    assert task_python(both) == ("b", "PYSPARK_PYTHON")
    assert task_python({"PYSPARK_DRIVER_PYTHON": "a"}) == ("python3", "python3 of the PATH")
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
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "no-driver-python")
    assert missing_source_sentence("orders").endswith(
        f"; unset PYSPARK_DRIVER_PYTHON, or set it to {sys.executable}"
    )
