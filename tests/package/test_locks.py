"""The packages of the image: locked by hash, allowed by pyproject.toml, enough for a login."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.checkout import PYTHONPATH, ROOT
from tests.counterparts.probe import free_port
from tests.image.clients import brokers_by_token
from tests.issuer import AUDIENCE, ISSUER, standard_set, token
from tests.package.test_compose import FILES, project
from tests.products import for_the_night

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = ("objects", "postgresql", "security")
"""Extras of the image."""
HOOK = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["mypyc"]
WANTED = {
    "broker": [
        *PROJECT["project"]["dependencies"],
        *(each for extra in EXTRAS for each in PROJECT["project"]["optional-dependencies"][extra]),
    ],
    "build": [*PROJECT["build-system"]["requires"], *HOOK["dependencies"], "setuptools"],
}
OPTIONAL = PROJECT["project"]["optional-dependencies"]
(PYSPARK,) = [each for each in OPTIONAL["interop"] if each.startswith("pyspark[")]
WANTED["spark"] = [*PROJECT["project"]["dependencies"], *OPTIONAL["spark"], PYSPARK]
PYTHONS = ("3.11", "3.13", "3.14")
"""Debian's, that of the image, and the newest."""
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


class Locked(NamedTuple):
    """A line of a list, with the lines of its hashes."""

    requirement: Requirement
    hashes: list[str]

    @property
    def version(self) -> Version:
        (pin,) = self.requirement.specifier
        assert pin.operator == "=="
        return Version(pin.version)


def locked(name: str, python: str = "3.11") -> dict[str, Locked]:
    """Return the entries of a list for a Python, by their names; each line must be understood."""
    text = (ROOT / "docker" / f"{name}.lock").read_text().replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        entry, *hashes = re.split(r"\s+(?=--)", line.strip())
        assert all(HASH.fullmatch(each) for each in hashes), line
        requirement = Requirement(entry)
        if applies(requirement, python):
            key = canonicalize_name(requirement.name)
            assert key not in found
            found[key] = Locked(requirement, hashes)
    return found


def environment_of(python: str) -> dict[str, str]:
    return {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "extra": "",
    }


def applies(requirement: Requirement, python: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate(environment_of(python))


by_list = pytest.mark.parametrize("name", WANTED)


@by_list
@pytest.mark.parametrize("python", PYTHONS)
def test_every_locked_package_has_hashes(name, python):
    assert [key for key, each in locked(name, python).items() if not each.hashes] == []


@by_list
@pytest.mark.parametrize("python", PYTHONS)
def test_locked_versions_are_those_that_the_project_allows(name, python):
    found = locked(name, python)
    for text in WANTED[name]:
        wanted = Requirement(text)
        entry = found[canonicalize_name(wanted.name)]
        assert wanted.specifier.contains(entry.version), f"{text}: run docker/lock"


def commands(dockerfile: Path) -> list[str]:
    """Return the commands of pip, each in one line."""
    lines = dockerfile.read_text().replace("\\\n", " ").split(";")
    return [
        " ".join(each.split()) for each in lines if re.search(r"/pip\b.* (install|wheel) ", each)
    ]


@pytest.mark.parametrize("path", ["docker/Dockerfile", "docker/spark/Dockerfile"])
def test_image_installs_locked_packages_only(path):
    found = commands(ROOT / path)
    assert len(found) == 4
    for each in found:
        # What is built without isolation fetches nothing besides.
        assert "--no-build-isolation" in each or " wheel " not in each
        assert "$locked" in each or "--no-deps --no-index" in each
    (flags,) = re.findall(r'locked="([^"]*)"', (ROOT / path).read_text())
    assert flags.endswith("--require-hashes --requirement")


# -------------------------------------------------------------------------------- other people's

EXACT = re.compile(
    r"(?:[\w./-]+:v?\d+\.\d+(\.\d+)?[\w.-]*|[\w./-]+(:[\w.-]+)?@sha256:[0-9a-f]{64})"
)
OURS = re.compile(r"barnabas(-spark)?:latest")


def test_images_of_others_are_named_by_an_exact_version():
    images = {service["image"] for path in FILES for service in project(path)["services"].values()}
    others = {each for each in images if not OURS.fullmatch(each)}
    assert len(others) == 4
    assert [each for each in others if not EXACT.fullmatch(each)] == []


@pytest.mark.parametrize("path", ["docker/Dockerfile", "docker/spark/Dockerfile"])
def test_base_image_is_named_by_an_exact_version(path):
    (base,) = re.findall(r"^ARG BASE_IMAGE=(\S+)$", (ROOT / path).read_text(), re.MULTILINE)
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-bookworm(@sha256:[0-9a-f]{64})?", base)


def test_actions_are_named_by_a_commit():
    used = [
        step["uses"]
        for path in (ROOT / ".github" / "workflows").iterdir()
        for job in yaml.safe_load(path.read_text())["jobs"].values()
        for step in job["steps"]
        if "uses" in step
    ]
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each)] == []


# ------------------------------------------------------------------------------------- a login


@pytest.fixture(scope="module")
def python_of_the_image(tmp_path_factory):
    """A Python with the packages of the image, and no others; the broker is that of this tree."""
    directory = tmp_path_factory.mktemp("image")
    subprocess.run([sys.executable, "-m", "venv", directory], check=True)
    python = directory / "bin" / "python"
    flags = ["--quiet", "--only-binary", ":all:", "--require-hashes"]
    lock = ROOT / "docker" / "broker.lock"
    subprocess.run([python, "-m", "pip", "install", *flags, "-r", lock], check=True)
    subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "pip"], check=True)
    return python


@for_the_night(beside="tests/package/test_locks.py::test_image_installs_locked_packages_only")
def test_token_login_works_with_the_packages_of_the_image(python_of_the_image, tmp_path):
    (tmp_path / "keys.json").write_bytes(standard_set())
    port = free_port()
    oauth = "sasl.oauthbearer"
    settings = {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port}",
        "barnabas.http.listener": "",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{oauth}.jwks.endpoint.url": f"file://{tmp_path}/keys.json",
        f"{oauth}.expected.issuer": ISSUER,
        f"{oauth}.expected.audience": AUDIENCE,
    }
    words = [f"-X{key}={value}" for key, value in settings.items()]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("KAFKA_")}
    with subprocess.Popen(
        [python_of_the_image, "-m", "barnabas", "serve", *words],
        cwd=tmp_path,
        env={**kept, "PYTHONPATH": PYTHONPATH},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as broker:
        try:
            lines = iter(broker.stdout.readline, "")
            assert any("started" in line for line in lines), broker.communicate(timeout=60)[1]
            address = f"127.0.0.1:{port}"
            assert brokers_by_token(address, token()) == [address]
        finally:
            broker.send_signal(signal.SIGTERM)
            _, log = broker.communicate(timeout=120)
    assert broker.returncode == 0
    assert "Traceback" not in log
