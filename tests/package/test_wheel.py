"""The wheel: what is in it, and that it runs where this checkout is not."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from barnabas.broker.runtime.build import commit
from barnabas.broker.version import __version__
from tests.archives import extract
from tests.checkout import ROOT
from tests.counterparts.probe import free_port
from tests.package.builds import build_pure_wheel, build_sdist, run, sha256
from tests.package.installed import environment_with, serve_a_client
from tests.products import for_the_night

PACKAGES = ("broker", "protocol", "coordinator", "storage", "spark_connector")
IN_SDIST = {
    ".ci",
    "src",
    "broker",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "pyproject.toml",
    "PKG-INFO",
}
"""The entries at the top of an sdist; ``broker`` has files of licences only."""


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build_sdist(tmp_path_factory.mktemp("sdist"))


def wheel_of(sdist, directory):
    """Build the pure wheel as pip does: of the sdist alone."""
    extract(sdist, directory)
    (source,) = directory.iterdir()
    return build_pure_wheel(directory / "wheel", source)


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    return wheel_of(sdist, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def bin_directory(wheel, tmp_path_factory):
    """The commands of a fresh environment that holds nothing but the wheel and what it needs."""
    return environment_with(tmp_path_factory.mktemp("installed") / "environment", wheel)


def test_sdist_has_what_a_wheel_is_built_from_and_no_more(sdist):
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert {name.partition("/")[0] for name in names} == IN_SDIST | {".gitignore"}
    assert all(name.endswith(".LICENSE") for name in names if name.startswith("broker/"))
    assert {f"src/barnabas/{package}/__init__.py" for package in PACKAGES} <= {*names}


@for_the_night(
    beside="tests/package/test_wheel.py::test_version_of_a_wheel_has_the_commit_of_the_checkout"
)
def test_two_builds_in_two_directories_have_the_same_bytes(sdist, wheel, tmp_path):
    again = build_sdist(tmp_path / "elsewhere" / "sdist")
    assert sha256(again) == sha256(sdist)
    assert sha256(wheel_of(again, tmp_path / "elsewhere" / "wheel")) == sha256(wheel)


def test_wheel_contains_an_sbom_of_the_libraries_in_javascript(wheel):
    archive = zipfile.ZipFile(wheel)
    name = f"barnabas-{__version__}.dist-info/sboms/barnabas.cdx.json"
    sbom = json.loads(archive.read(name))
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(archive.read(name).decode()) is None
    rows = json.loads((ROOT / "broker/console/static/vendor/vendor.json").read_text())
    assert [(each["name"], each["version"]) for each in sbom["components"]] == [
        (row["package"], row["version"]) for row in rows
    ]
    assert sbom["metadata"]["component"]["version"] == __version__


def test_what_is_in_the_wheel(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    folders = {name.partition("/")[0] for name in names}
    assert folders == {"barnabas", "pyspark_barnabas", f"barnabas-{__version__}.dist-info"}
    assert {f"barnabas/{package}/__init__.py" for package in PACKAGES} <= set(names)
    assert "barnabas/py.typed" in names
    static = ROOT / "broker" / "console" / "static"
    files = [each.relative_to(static).as_posix() for each in static.rglob("*") if each.is_file()]
    assert {f"barnabas/broker/console/static/{each}" for each in files} <= {*names}
    assert not [name for name in names if name.endswith((".pyc", ".so"))]
    assert wheel.name.endswith("-py3-none-any.whl")


def test_the_name_comes_from_the_environment(bin_directory, tmp_path):
    python = str(bin_directory / "python")
    code = "import barnabas, barnabas.testing; print(barnabas.__file__, barnabas.__version__)"
    file, version = run(python, "-c", code, cwd=tmp_path).split()
    assert file.startswith(str(bin_directory.parent))
    assert version == __version__
    for package in PACKAGES:
        code = f"import importlib.util; print(importlib.util.find_spec({package!r}))"
        assert run(python, "-c", code, cwd=tmp_path) == "None\n"


LOOK_UP = """
import io, sys
from pyspark.sql.worker.lookup_data_sources import _main
before = set(sys.modules)
found = io.BytesIO()
_main(io.BytesIO(), found)
print(found.getvalue()[:16])
imported = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(imported - sys.stdlib_module_names))

from pyspark.sql.types import StringType, StructType
from pyspark_barnabas import DefaultSource
try:
    DefaultSource({}).streamWriter(StructType().add("value", StringType()), False)
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


def test_spark_finds_the_data_source_where_only_pyspark_and_the_wheel_are(bin_directory, tmp_path):
    """PySpark's own look-up runs; a module that raised there would hide all data sources."""
    for name in ("pyspark", "py4j"):
        (tmp_path / name).symlink_to(Path(find_spec(name).origin).parent)
    python = bin_directory / "python"
    code = f"import sys; sys.path.append({str(tmp_path)!r})\n{LOOK_UP}"
    found, imported, refusal = run(str(python), "-c", code, cwd=tmp_path).splitlines()
    assert found == str(b"\0\0\0\x01" + b"\0\0\0\x08" + b"barnabas")
    assert imported == "['barnabas', 'pyspark_barnabas']"
    assert refusal == (
        f"WrongOption: The format barnabas cannot be used: {python}, the Python of Spark's workers,"
        " cannot import numpy (No module named 'numpy'); install Barnabas with its extra spark"
        " there, for example pip install '.[spark]' in a checkout."
    )


PLUGIN_TESTS = """
import sys

def test_own_packages():
    import broker.orders, coordinator.orders, protocol.orders, spark_connector.orders
    import storage.orders
    for each in broker, coordinator, protocol, spark_connector, storage:
        assert each.orders.WHOSE == each.__name__

def test_nothing_of_the_broker_is_imported():
    assert "barnabas.broker.testing.pytest_plugin" in sys.modules
    assert not {name for name in sys.modules if name.startswith("barnabas.broker.server")}
    assert "barnabas.broker.testing.embedded" not in sys.modules
"""
BROKER_TESTS = """
from kafka import KafkaProducer
import storage.orders

def test_orders(kafka):
    topic = kafka.create_topic("orders")
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    producer.send(topic, storage.orders.WHOSE.encode()).get()
    producer.close()
    kafka.crash()
    kafka.restart()
    assert [record.value for record in kafka.records("orders")] == [b"storage"]
"""


def test_a_project_with_packages_of_the_same_names_runs_beside_it(bin_directory, tmp_path):
    """The environment's pytest finds its own packages, and loads a broker only on request."""
    python = str(bin_directory / "python")
    run(python, "-m", "pip", "install", "--quiet", "pytest", "kafka-python", cwd=tmp_path)
    for package in PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
        (tmp_path / package / "orders.py").write_text(f"WHOSE = {package!r}\n")
    (tmp_path / "test_plain.py").write_text(PLUGIN_TESTS)
    (tmp_path / "test_with_broker.py").write_text(BROKER_TESTS)
    said = run(python, "-m", "pytest", "-q", "test_plain.py", "test_with_broker.py", cwd=tmp_path)
    assert "3 passed" in said
    # pytest would rewrite the asserts of every module that the broker imports, not only of those
    # that it imports before the plugin can say so.
    installed = next(bin_directory.parent.glob("lib/python3*/site-packages/barnabas"))
    rewritten = {
        f"{path.parents[1].relative_to(installed)}/{path.name.partition('.')[0]}"
        for path in installed.rglob("*-pytest-*.pyc")
    }
    assert rewritten == {
        "./__init__",
        "broker/__init__",
        "broker/version",
        "broker/testing/__init__",
        "broker/testing/pytest_plugin",
    }
    served = run(str(bin_directory / "barnabas"), "--version", cwd=tmp_path)
    assert served == run(python, "-m", "barnabas", "--version", cwd=tmp_path)


def test_version_of_a_wheel_has_the_commit_of_the_checkout(bin_directory, tmp_path):
    printed = run(bin_directory / "barnabas", "--version", cwd=tmp_path)
    assert printed == f"barnabas {__version__} (pure, commit {commit()})\n"
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?", commit())


def test_version_without_git_and_without_a_commit_says_why_it_is_unknown(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name != "barnabas/commit"]
        archive.extractall(tmp_path, names)
    code = "from barnabas.broker.runtime.build import commit; print(commit())"
    printed = run(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert printed == "unknown: built without git and without BARNABAS_COMMIT\n"


def test_broker_of_the_wheel_keeps_records(bin_directory, tmp_path):
    assert " build=pure " in serve_a_client(bin_directory, tmp_path)


def test_command_that_tries_each_wheel_of_a_release_serves_a_client(bin_directory, tmp_path):
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    version, serve = settings["test-command"]
    assert version.startswith("barnabas --version | grep ")
    server = f"localhost:{free_port()}"
    printed = run(
        *shlex.split(serve),
        cwd=tmp_path,
        PATH=f"{bin_directory}:/usr/bin:/bin",
        KAFKA_LISTENERS=f"PLAINTEXT://{server}",
        KAFKA_BARNABAS_HTTP_LISTENER=f"localhost:{free_port()}",
        BARNABAS_SERVERS=server,
    )
    assert printed.endswith("one order\n")


def test_broker_of_the_wheel_without_arguments(bin_directory, tmp_path):
    port = free_port()
    broker = subprocess.Popen(
        [bin_directory / "barnabas", "serve", f"-Xlisteners=PLAINTEXT://127.0.0.1:{port}"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert broker.stdout.readline() == f"listening on PLAINTEXT://127.0.0.1:{port}\n"
        line = broker.stdout.readline()
        if line.startswith("console on http://localhost:"):  # Unless its port is taken here.
            line = broker.stdout.readline()
        assert "Kafka Server started" in line
        barnabas = str(bin_directory / "barnabas")
        run(barnabas, "ready", "-b", f"127.0.0.1:{port}", cwd=tmp_path)
        assert (tmp_path / "data").is_dir()
        broker.send_signal(signal.SIGTERM)
        assert broker.wait(timeout=120) == 0
    finally:
        broker.kill()
        broker.wait()
        broker.stdout.close()
