"""Pinned jars, fetched once and checked by hash: those of Spark's Kafka connector.

Maven fetches them when there is one, otherwise the Ivy that PySpark ships. Either way a jar is
taken into the cache only after its SHA-256 matched the pinned one.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from barnabas.spark_connector.refusals import Refusal
from barnabas.spark_connector.session.cache import cache_directory
from barnabas.spark_connector.session.java import java, java_environment, trust_store_options

FETCH_TIMEOUT_S = 600


class PinnedJar(NamedTuple):
    """A jar by its Maven coordinates and the SHA-256 (hex) it must have."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Name of the file in the cache."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def coordinates(self) -> str:
        """Return `group:artifact:version`."""
        return f"{self.group}:{self.artifact}:{self.version}"


# PySpark's wheel has none of these, and a plain transitive resolution of the connector asks for
# artifacts that not every mirror has, so the four are named one by one. What else they need is in
# PySpark's wheel.
SPARK_KAFKA_JARS = (
    PinnedJar(
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        "4.2.0",
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    ),
    PinnedJar(
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        "4.0.0",
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    ),
    PinnedJar(
        "org.apache.kafka",
        "kafka-clients",
        "3.9.2",
        "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
    ),
    PinnedJar(
        "org.apache.commons",
        "commons-pool2",
        "2.13.1",
        "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
    ),
)
CONNECTOR_JARS = tuple(jar.coordinates for jar in SPARK_KAFKA_JARS)
"""Maven coordinates of the tested connector, without their own dependencies."""
TESTED_SPARK_VERSIONS = ("4.2.0", "4.3.0")
"""Versions of PySpark that were tested with these jars."""


def spark_kafka_jars() -> list[Path]:
    """Return the four jars that PySpark lacks to read and write Kafka."""
    directory = fetched("spark_kafka", SPARK_KAFKA_JARS)
    return [directory / jar.file_name for jar in SPARK_KAFKA_JARS]


def jars_of_installed_spark() -> list[Path]:
    """Return the connector's jars for the installed PySpark; refuse an untested version."""
    version = pyspark_version()
    minor = _minor(version)
    if minor not in {_minor(tested) for tested in TESTED_SPARK_VERSIONS}:
        raise Refusal(
            f"no Kafka jars are tested with the installed PySpark {version}: install PySpark"
            f" {' or '.join(TESTED_SPARK_VERSIONS)}, or name the connector with --packages"
            f" org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"
        )
    return spark_kafka_jars()


def has_connector() -> bool:
    """Return whether PySpark's own jars include a connector, as in a prepared image."""
    jars = pyspark_jars()
    return jars is not None and any(jars.glob("spark-sql-kafka-0-10_*.jar"))


def pyspark_version() -> str:
    """Return the version of the installed PySpark."""
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        raise Refusal(
            f"PySpark is not installed: `pip install '.[spark]' "
            f"pyspark=={TESTED_SPARK_VERSIONS[0]}` in a checkout of Barnabas"
        ) from None


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


# -------------------------------------------------------------------------------------- the cache


def fetched(family: str, pinned: Iterable[PinnedJar]) -> Path:
    """Fetch and check the missing jars of a family; return their directory in the cache."""
    jars = list(pinned)
    directory = cache_directory() / f"{family}_jars"
    directory.mkdir(exist_ok=True)
    _remove_strangers(directory, {jar.file_name for jar in jars})
    missing = [jar for jar in jars if not _is_intact(directory / jar.file_name, jar)]
    if missing:
        # A directory of its own on the same file system, so that a jar enters the cache by
        # rename: two processes at once never see half a jar.
        with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
            _fetch(missing, Path(scratch))
            for jar in missing:
                _take(Path(scratch) / jar.file_name, directory / jar.file_name, jar)
    return directory


def _remove_strangers(directory: Path, expected: set[str]) -> None:
    # The directory is used as a class path.
    for path in directory.glob("*.jar"):
        if path.name not in expected:
            path.unlink(missing_ok=True)


def _is_intact(path: Path, jar: PinnedJar) -> bool:
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == jar.sha256


def _take(fetched_file: Path, final: Path, jar: PinnedJar) -> None:
    if not fetched_file.exists():
        raise Refusal(f"{jar.file_name} could not be fetched")
    if not _is_intact(fetched_file, jar):
        raise Refusal(f"{jar.file_name} was fetched, but is not the pinned file")
    fetched_file.replace(final)


# ------------------------------------------------------------------------------------- fetching


def _fetch(jars: Iterable[PinnedJar], destination: Path) -> None:
    """Fetch jars into a directory, by Maven or else by PySpark's Ivy."""
    if maven := shutil.which("mvn"):
        _fetch_with_maven(maven, jars, destination)
    else:
        _fetch_with_ivy(jars, destination)


def _fetch_with_maven(maven: str, jars: Iterable[PinnedJar], destination: Path) -> None:
    # Without transitive dependencies: the pinned list is complete, and the parents of some of
    # these artifacts name repositories that may be unreachable.
    project = destination / "pom.xml"
    project.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>barnabas</groupId>"
        "<artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>"
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
    module = destination / "ivy.xml"
    module.write_text(
        '<ivy-module version="2.0"><info organisation="barnabas" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(map(_ivy_dependency, jars))}</dependencies></ivy-module>"
    )
    command = [str(java()), *trust_store_options(), "-jar", str(_ivy()), "-ivy", str(module)]
    # Some artifacts declare an OSGi bundle, which is a jar as well.
    command += ["-cache", str(destination / "ivy"), "-confs", "default", "-types", "jar", "bundle"]
    _run([*command, "-retrieve", f"{destination}/[artifact]-[revision].[ext]"])


def _ivy() -> Path:
    jars = pyspark_jars()
    if jars is None:
        raise Refusal(
            "the jars need Maven or PySpark: `apt-get install maven` or `pip install pyspark`"
        )
    return next(jars.glob("ivy-*.jar"))


def pyspark_jars() -> Path | None:
    """Return the directory with the installed PySpark's jars, or `None` without PySpark."""
    specification = importlib.util.find_spec("pyspark")
    if specification is None or specification.origin is None:
        return None
    return Path(specification.origin).parent / "jars"


def _ivy_dependency(jar: PinnedJar) -> str:
    return (
        f'<dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}"'
        ' transitive="false" conf="default-&gt;default"/>'
    )


def _run(command: list[str]) -> None:
    try:
        answer = subprocess.run(  # noqa: S603 - Maven, or Ivy in the chosen Java
            command,
            env=java_environment(),
            capture_output=True,
            text=True,
            timeout=FETCH_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Refusal(
            f"{os.path.basename(command[0])} could not fetch the jars in {FETCH_TIMEOUT_S} seconds"
        ) from None
    if answer.returncode:
        said = " ".join((answer.stdout + answer.stderr).split())
        raise Refusal(f"{os.path.basename(command[0])} could not fetch the jars: {said[-1000:]}")
