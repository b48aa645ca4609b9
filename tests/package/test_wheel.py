"""The wheel: what is in it, and that it runs where this checkout is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from broker.version import __version__
from tests.counterparts.probe import free_port

ROOT = Path(__file__).parents[2]
PACKAGES = {"broker", "protocol", "coordinator", "storage", "spark_connector"}


def run(*command, **options):
    """Run a command outside of the checkout and return what it printed."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
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
    assert folders - PACKAGES == {f"barnabas-{__version__}.dist-info"}
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    assert {f"{package}/__init__.py" for package in PACKAGES} <= set(names)
    assert not [name for name in names if name.endswith((".pyc", ".so"))]
    assert wheel.name.endswith("-py3-none-any.whl")


def test_the_packages_come_from_the_environment(bin_directory, tmp_path):
    code = "import broker, protocol, coordinator, storage, spark_connector; print(broker.__file__)"
    printed = run(str(bin_directory / "python"), "-c", code, cwd=tmp_path)
    assert str(bin_directory.parent) in printed


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
        assert "Kafka Server started" in broker.stdout.readline()
        barnabas = str(bin_directory / "barnabas")
        run(barnabas, "ready", "-b", f"127.0.0.1:{port}", cwd=tmp_path)
        assert (tmp_path / "data").is_dir()
        broker.send_signal(signal.SIGTERM)
        assert broker.wait(timeout=120) == 0
    finally:
        broker.kill()
        broker.wait()
        broker.stdout.close()
