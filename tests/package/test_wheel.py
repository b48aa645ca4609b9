"""The wheel: what is in it, and that it runs where this checkout is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from barnabas.broker.version import __version__
from tests.checkout import ROOT
from tests.counterparts.probe import free_port

PACKAGES = ("broker", "protocol", "coordinator", "storage", "spark_connector")


def run(*command, **options):
    """Run a command outside of the checkout and return what it printed."""
    left_out = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
    environment = {key: value for key, value in os.environ.items() if key not in left_out}
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, **options
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    directory = tmp_path_factory.mktemp("dist")
    run(
        *(sys.executable, "-m", "build", "--wheel", "--no-isolation"),
        *("--outdir", str(directory), str(ROOT)),
        cwd=directory,
    )
    (path,) = directory.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def bin_directory(wheel, tmp_path_factory):
    """The commands of a fresh environment that holds nothing but the wheel and what it needs."""
    directory = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", str(directory), cwd=directory)
    commands = directory / "bin"
    run(str(commands / "python"), "-m", "pip", "install", "--quiet", str(wheel), cwd=directory)
    return commands


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
    """Its pytest finds its own packages, loads nothing of the broker, and may ask for one."""
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


def test_the_command_says_its_version(bin_directory, tmp_path):
    printed = run(str(bin_directory / "barnabas"), "--version", cwd=tmp_path)
    assert printed == f"barnabas {__version__}\n"


def test_a_broker_of_the_wheel(bin_directory, tmp_path):
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
