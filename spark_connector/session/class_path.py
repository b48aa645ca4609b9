"""Jars on Spark's class path: those of its Kafka connector, and those that a user adds.

The connector's jars are pinned (`jars.py`). Spark's Ivy fetches the packages of a user with their
dependencies, except for other versions of the pinned jars.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping, Sequence
from glob import glob
from typing import Final

from barnabas.spark_connector.checkpoint.checkpoint_files import local_path
from barnabas.spark_connector.refusals import WrongUse
from barnabas.spark_connector.session.jars import (
    SPARK_KAFKA_JARS,
    has_connector,
    jars_of_installed_spark,
)

JARS: Final = "spark.jars"
PACKAGES: Final = "spark.jars.packages"
EXCLUDES: Final = "spark.jars.excludes"
EXAMPLE: Final = "org.apache.spark:spark-avro_2.13:4.2.0"
_PACKAGE: Final = re.compile(r"[^:,/\s]+:[^:,/\s]+:[^:,/\s]+")
_CONNECTOR: Final = "spark-sql-kafka-0-10"
_CLASS_OF_CONNECTOR: Final = "org/apache/spark/sql/kafka010/KafkaSourceProvider.class"


def with_packages(settings: Mapping[str, str], given: Sequence[str]) -> dict[str, str]:
    """Return the settings with additional packages; raises WrongUse."""
    packages = [each for text in given for each in _listed(text)]
    for each in packages:
        if not _PACKAGE.fullmatch(each):
            raise WrongUse(f"--packages {each} is not group:artifact:version, as in {EXAMPLE}")
    if not packages:
        return dict(settings)
    return {**settings, PACKAGES: ",".join([*_listed(settings.get(PACKAGES)), *packages])}


def with_connector(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with the connector's jars, unless they or PySpark have one."""
    jars = _listed(settings.get(JARS))
    packages = {_module(each) for each in _listed(settings.get(PACKAGES))}
    is_named = any(_is_connector(each.partition(":")[2]) for each in packages)
    # Check all of them, since a missing one is refused.
    if any([_has_connector(each) for each in jars]) or is_named or has_connector():  # noqa: C419
        return dict(settings)
    pinned = {f"{jar.group}:{jar.artifact}": jar for jar in SPARK_KAFKA_JARS}
    files = {path.name: path for path in jars_of_installed_spark()}
    # A package with another version of a pinned jar replaces it.
    ours = {name: files[jar.file_name] for name, jar in pinned.items() if name not in packages}
    added = {JARS: ",".join([*jars, *map(str, ours.values())])}
    if packages:
        added[EXCLUDES] = ",".join([*_listed(settings.get(EXCLUDES)), *ours])
    return {**settings, **added}


def _listed(text: str | None) -> list[str]:
    return [each.strip() for each in (text or "").split(",") if each.strip()]


def _module(coordinates: str) -> str:
    """Return `group:artifact` of a package, which Spark accepts as `g:a:v` or `g/a:v`."""
    return ":".join(coordinates.replace("/", ":").split(":")[:2])


def _is_connector(name: str) -> bool:
    return name.startswith(f"{_CONNECTOR}_")


def _has_connector(jar: str) -> bool:
    """Return whether a jar is or has the connector; a remote one is judged by its name."""
    path = local_path(jar)
    if path is None:
        return _is_connector(jar.rpartition("/")[2])
    found = glob(path)
    if not found:
        raise WrongUse(f"--conf {JARS} names {jar}, but there is no such file")
    return any(map(_has_class_of_connector, found))


def _has_class_of_connector(path: str) -> bool:
    try:
        with zipfile.ZipFile(path) as jar:
            return _CLASS_OF_CONNECTOR in jar.NameToInfo
    except (OSError, zipfile.BadZipFile) as error:
        raise WrongUse(f"--conf {JARS} names {path}, which is no jar: {error}") from None
