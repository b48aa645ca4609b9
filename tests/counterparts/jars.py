"""Pinned jars of Apache Kafka and of Spark's Kafka connector, fetched once and checked by hash.

Maven fetches them when there is one, otherwise the Ivy that PySpark ships. Either way a jar is
taken into the cache only after its SHA-256 matched the pinned one beside this file.
"""

import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.counterparts.cache import cache_directory
from tests.counterparts.errors import MissingCounterpart
from tests.counterparts.java import java, java_environment, trust_store_options

KAFKA_VERSION = "4.3.0"
FETCH_TIMEOUT_S = 600
_HERE = Path(__file__).parent


class PinnedJar(NamedTuple):
    """A jar by its Maven coordinates and the SHA-256 (hex) it must have."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


def kafka_jars() -> Path:
    """Return a directory with the jars of Apache Kafka 4.3.0: server, tools, clients."""
    return _fetched("kafka")


def kafka_class_path() -> str:
    """Return the class path that runs Apache Kafka 4.3.0's broker and tools."""
    return f"{kafka_jars()}/*"


def spark_kafka_jars() -> list[Path]:
    """Return the four jars that PySpark needs beside its own to read and write Kafka."""
    return sorted(_fetched("spark_kafka").glob("*.jar"))


def pinned_jars(family: str) -> list[PinnedJar]:
    """Return the pinned jars of a family ("kafka" or "spark_kafka")."""
    lines = (_HERE / f"{family}_jars.txt").read_text().splitlines()
    return [_parse(line) for line in lines if line.strip()]


def _parse(line: str) -> PinnedJar:
    coordinates, sha256 = line.split()
    group, artifact, version = coordinates.split(":")
    return PinnedJar(group, artifact, version, sha256)


@functools.cache
def _fetched(family: str) -> Path:
    """Return the cache directory of a family after all its jars are there and checked."""
    directory = cache_directory() / f"{family}_jars"
    directory.mkdir(exist_ok=True)
    pinned = pinned_jars(family)
    _remove_strangers(directory, {jar.file_name for jar in pinned})
    missing = [jar for jar in pinned if not _is_intact(directory / jar.file_name, jar)]
    if missing:
        # A directory of its own on the same file system, so that a jar enters the cache by
        # rename: two test runs at once never see half a jar.
        with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
            _fetch(missing, Path(scratch))
            for jar in missing:
                _take(Path(scratch) / jar.file_name, directory / jar.file_name, jar)
    return directory


def _remove_strangers(directory: Path, expected: set[str]) -> None:
    for path in directory.glob("*.jar"):
        if path.name not in expected:
            path.unlink()


def _is_intact(path: Path, jar: PinnedJar) -> bool:
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == jar.sha256


def _take(fetched: Path, final: Path, jar: PinnedJar) -> None:
    if not fetched.exists():
        raise MissingCounterpart(f"{jar.file_name} could not be fetched")
    if not _is_intact(fetched, jar):
        raise MissingCounterpart(f"{jar.file_name} was fetched, but is not the pinned file")
    os.replace(fetched, final)


def _fetch(jars: Iterable[PinnedJar], destination: Path) -> None:
    """Fetch jars into a directory, by Maven or else by PySpark's Ivy."""
    if maven := shutil.which("mvn"):
        _fetch_with_maven(maven, jars, destination)
    else:
        _fetch_with_ivy(jars, destination)


def _fetch_with_maven(maven: str, jars: Iterable[PinnedJar], destination: Path) -> None:
    # Without their transitive dependencies: the pinned list is complete, and the parents of
    # some of these artifacts name repositories that need not be reachable.
    project = destination / "pom.xml"
    project.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>barnabas</groupId>"
        "<artifactId>counterparts</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{''.join(map(_maven_dependency, jars))}</dependencies></project>"
    )
    command = [maven, "-q", "-B", "-f", str(project), "dependency:copy-dependencies"]
    _run([*command, f"-DoutputDirectory={destination}"])


def _maven_dependency(jar: PinnedJar) -> str:
    return (
        f"<dependency><groupId>{jar.group}</groupId><artifactId>{jar.artifact}</artifactId>"
        f"<version>{jar.version}</version><exclusions><exclusion><groupId>*</groupId>"
        "<artifactId>*</artifactId></exclusion></exclusions></dependency>"
    )


def _fetch_with_ivy(jars: Iterable[PinnedJar], destination: Path) -> None:
    specification = importlib.util.find_spec("pyspark")
    if specification is None or specification.origin is None:
        raise MissingCounterpart(
            "the jars need Maven or PySpark: `apt-get install maven` or `pip install pyspark`"
        )
    ivy = next((Path(specification.origin).parent / "jars").glob("ivy-*.jar"))
    module = destination / "ivy.xml"
    module.write_text(
        '<ivy-module version="2.0"><info organisation="barnabas" module="counterparts"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(map(_ivy_dependency, jars))}</dependencies></ivy-module>"
    )
    command = [str(java()), *trust_store_options(), "-jar", str(ivy), "-ivy", str(module)]
    # "bundle" is how some artifacts call a jar that is also an OSGi bundle.
    command += ["-cache", str(destination / "ivy"), "-confs", "default", "-types", "jar", "bundle"]
    _run([*command, "-retrieve", f"{destination}/[artifact]-[revision].[ext]"])


def _ivy_dependency(jar: PinnedJar) -> str:
    return (
        f'<dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}"'
        ' transitive="false" conf="default-&gt;default"/>'
    )


def _run(command: list[str]) -> None:
    answer = subprocess.run(
        command,
        env=java_environment(),
        capture_output=True,
        text=True,
        timeout=FETCH_TIMEOUT_S,
        check=False,
    )
    if answer.returncode:
        raise MissingCounterpart(
            f"{command[0]} could not fetch the jars: {(answer.stdout + answer.stderr)[-1000:]}"
        )
