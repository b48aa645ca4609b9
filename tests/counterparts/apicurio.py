"""Apicurio Registry on loopback: a schema registry with Confluent's API, in memory.

Version 2.6: the newer ones need Java 21.
"""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas.spark_connector.session.cache import cache_directory
from barnabas.spark_connector.session.java import java_environment, trust_store_options
from tests.counterparts.errors import MissingCounterpart
from tests.counterparts.jars import spark_jars
from tests.counterparts.java import java
from tests.counterparts.spark import QUICK_START
from tests.waiting import wait_until

VERSION = "2.6.13.Final"
GROUP, NAME = "io.apicurio", "apicurio-registry-app"
ARCHIVE = f"{NAME}-{VERSION}-all.tar.gz"
SHA256 = "3cda1b34aa020fb4ac4dd6a66018d757e81e437f97e20a1f92d366b70091c6ba"
RUNNER = f"{NAME}-{VERSION}-runner.jar"
FETCH_TIMEOUT_S = 600
START_TIMEOUT_S = 120
_LISTENING = re.compile(r"Listening on: (http://\S+)")


@functools.cache
def apicurio() -> Path:
    """Return the directory of Apicurio Registry, fetched once and checked by SHA-256."""
    directory = cache_directory() / f"apicurio-{VERSION}"
    if not directory.exists():
        # A directory of its own on the same file system: it enters the cache by rename.
        with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
            unpacked = Path(scratch) / "unpacked"
            with tarfile.open(_fetched(Path(scratch))) as archive:
                archive.extractall(unpacked, filter="data")
            unpacked.replace(directory)
    return directory


def _fetched(scratch: Path) -> Path:
    maven = shutil.which("mvn")
    command = _ivy_command(scratch) if maven is None else _maven_command(maven, scratch)
    answer = subprocess.run(
        command,
        cwd=scratch,
        env=java_environment(),
        capture_output=True,
        text=True,
        timeout=FETCH_TIMEOUT_S,
        check=False,
    )
    archive = scratch / ARCHIVE
    if answer.returncode or not archive.exists():
        said = " ".join((answer.stdout + answer.stderr).split())
        raise MissingCounterpart(f"{ARCHIVE} could not be fetched: {said[-1000:]}")
    if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
        raise MissingCounterpart(f"{ARCHIVE} was fetched, but is not the pinned file")
    return archive


def _maven_command(maven: str, scratch: Path) -> list[str]:
    artifact = f"-Dartifact={GROUP}:{NAME}:{VERSION}:tar.gz:all"
    return [maven, "-q", "-B", "dependency:copy", artifact, f"-DoutputDirectory={scratch}"]


def _ivy_command(scratch: Path) -> list[str]:
    """Return the command of PySpark's own Ivy, where there is no Maven."""
    module = scratch / "ivy.xml"
    module.write_text(
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="barnabas" module="apicurio"/>'
        '<configurations><conf name="default"/></configurations><dependencies>'
        f'<dependency org="{GROUP}" name="{NAME}" rev="{VERSION}" transitive="false">'
        f'<artifact name="{NAME}" type="tar.gz" ext="tar.gz" m:classifier="all"/>'
        "</dependency></dependencies></ivy-module>"
    )
    (ivy,) = spark_jars().glob("ivy-*.jar")
    command = [str(java()), *trust_store_options(), "-jar", str(ivy), "-ivy", str(module)]
    pattern = f"{scratch}/[artifact]-[revision]-[classifier].[ext]"
    return [*command, "-cache", str(scratch / "ivy"), "-types", "tar.gz", "-retrieve", pattern]


class Registry:
    """A running registry, from the start of the `with` block to its end."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._log = directory / "apicurio.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""
        """The address of Confluent's API."""

    def __enter__(self) -> Self:
        settings = {"quarkus.http.host": "127.0.0.1", "quarkus.http.port": "0"}
        options = [f"-D{name}={value}" for name, value in settings.items()]
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [str(java()), *QUICK_START, "-Xmx512m", *options, "-jar", str(apicurio() / RUNNER)],
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_until(self._is_listening, self._log.read_text, seconds=START_TIMEOUT_S)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _is_listening(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        found = _LISTENING.search(self._log.read_text())
        if found is not None:
            self.url = f"{found[1]}/apis/ccompat/v7"
        return found is not None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
