"""Apicurio Registry on loopback: a schema registry with Confluent's API.

Version 2.6 keeps schemas in memory; 3.3, which needs Java 21, keeps them in topics (`kafkasql`).
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from barnabas.spark_connector.session.cache import cache_directory
from barnabas.spark_connector.session.java import java_environment, trust_store_options
from tests.archives import extract
from tests.counterparts.broker_process import HOST
from tests.counterparts.errors import MissingCounterpart
from tests.counterparts.jars import spark_jars
from tests.counterparts.java import java, newer_java
from tests.counterparts.probe import free_port
from tests.counterparts.service import Service
from tests.counterparts.spark import QUICK_START
from tests.http_client import urlopen

GROUP, NAME = "io.apicurio", "apicurio-registry-app"


class Release(NamedTuple):
    """A release by its version, the SHA-256 (hex) of its archive, and what runs it."""

    version: str
    sha256: str
    runner: str
    """The jar in the archive."""
    java: int
    """The least major version of Java."""

    @property
    def archive(self) -> str:
        """Name of the archive."""
        return f"{NAME}-{self.version}-all.tar.gz"


IN_MEMORY = Release(
    "2.6.13.Final",
    "3cda1b34aa020fb4ac4dd6a66018d757e81e437f97e20a1f92d366b70091c6ba",
    f"{NAME}-2.6.13.Final-runner.jar",
    17,
)
IN_TOPICS = Release(
    "3.3.3",
    "8bc6751c76d963734224b01d5e7f84ccb3cb61c87d3bd77c36c35f10a5cbed63",
    "quarkus-run.jar",
    21,
)
FETCH_TIMEOUT_S = 600
REQUEST_TIMEOUT_S = 10


@functools.cache
def apicurio(release: Release = IN_MEMORY) -> Path:
    """Return the directory of Apicurio Registry, fetched once and checked by SHA-256."""
    directory = cache_directory() / f"apicurio-{release.version}"
    if not directory.exists():
        # A directory of its own on the same file system: it enters the cache by rename.
        with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
            unpacked = Path(scratch) / "unpacked"
            extract(_fetched(release, Path(scratch)), unpacked)
            unpacked.replace(directory)
    return directory


def _fetched(release: Release, scratch: Path) -> Path:
    maven = shutil.which("mvn")
    command = (
        _ivy_command(release, scratch) if maven is None else _maven_command(release, maven, scratch)
    )
    answer = subprocess.run(
        command,
        cwd=scratch,
        env=java_environment(),
        capture_output=True,
        text=True,
        timeout=FETCH_TIMEOUT_S,
        check=False,
    )
    archive = scratch / release.archive
    if answer.returncode or not archive.exists():
        said = " ".join((answer.stdout + answer.stderr).split())
        raise MissingCounterpart(f"{release.archive} could not be fetched: {said[-1000:]}")
    if hashlib.sha256(archive.read_bytes()).hexdigest() != release.sha256:
        raise MissingCounterpart(f"{release.archive} was fetched, but is not the pinned file")
    return archive


def _maven_command(release: Release, maven: str, scratch: Path) -> list[str]:
    artifact = f"-Dartifact={GROUP}:{NAME}:{release.version}:tar.gz:all"
    return [maven, "-q", "-B", "dependency:copy", artifact, f"-DoutputDirectory={scratch}"]


def _ivy_command(release: Release, scratch: Path) -> list[str]:
    """Return the command of PySpark's own Ivy, where there is no Maven."""
    module = scratch / "ivy.xml"
    module.write_text(
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="barnabas" module="apicurio"/>'
        '<configurations><conf name="default"/></configurations><dependencies>'
        f'<dependency org="{GROUP}" name="{NAME}" rev="{release.version}" transitive="false">'
        f'<artifact name="{NAME}" type="tar.gz" ext="tar.gz" m:classifier="all"/>'
        "</dependency></dependencies></ivy-module>"
    )
    (ivy,) = spark_jars().glob("ivy-*.jar")
    command = [str(java()), *trust_store_options(), "-jar", str(ivy), "-ivy", str(module)]
    pattern = f"{scratch}/[artifact]-[revision]-[classifier].[ext]"
    return [*command, "-cache", str(scratch / "ivy"), "-types", "tar.gz", "-retrieve", pattern]


class Registry(Service):
    """A running registry, from the start of the `with` block to its end.

    ``settings`` are Quarkus's and Apicurio's properties beside those of the address.
    """

    start_timeout_s = 120

    def __init__(
        self,
        directory: Path,
        release: Release = IN_MEMORY,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(directory / "apicurio.log")
        self._directory = directory
        self._release = release
        self._address = f"http://{HOST}:{free_port()}"
        self._settings = {
            "quarkus.http.host": HOST,
            "quarkus.http.port": self._address.rpartition(":")[2],
            # Of version 3, which would take a fixed port.
            "quarkus.management.host": HOST,
            "quarkus.management.port": "0",
            **(settings or {}),
        }
        self.url = f"{self._address}/apis/ccompat/v7"
        """The address of Confluent's API."""

    def launch(self) -> None:
        """Start the process, and return before it is ready."""
        self._directory.mkdir(exist_ok=True)
        runner = apicurio(self._release) / self._release.runner
        options = [f"-D{name}={value}" for name, value in self._settings.items()]
        command = [str(newer_java(self._release.java)), *QUICK_START, "-Xmx512m", *options]
        with self._output_path.open("ab") as output:
            self._process = subprocess.Popen(
                [*command, "-jar", str(runner)],
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def is_ready(self) -> bool:
        """Return whether the registry accepts requests."""
        try:
            with urlopen(f"{self.url}/subjects", timeout=REQUEST_TIMEOUT_S) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    def is_at_work(self) -> bool:
        """Return whether the registry accepts requests."""
        return self.is_ready()


def in_topics(directory: Path, servers: str) -> Registry:
    """Return a registry that keeps its schemas in topics of a Kafka cluster."""
    settings = {
        "apicurio.storage.kind": "kafkasql",
        "apicurio.kafkasql.bootstrap.servers": servers,
        "apicurio.storage.snapshot.location": str(directory),
    }
    return Registry(directory, IN_TOPICS, settings)
