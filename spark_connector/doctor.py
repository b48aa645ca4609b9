"""`python -m barnabas.spark doctor`: whether Spark can run the sinks here, one line a check."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.spark_connector.cluster import Cluster
from barnabas.spark_connector.errors import SinkError
from barnabas.spark_connector.jars import jars_of_installed_spark
from barnabas.spark_connector.java import java_home, major_version
from barnabas.spark_connector.options import addresses
from barnabas.spark_connector.preflight import CLIENT_ID, TIMEOUT_MS
from barnabas.spark_connector.refusals import Refusal
from barnabas.spark_connector.requests import speaks_of_pins
from barnabas.spark_connector.worker_python import INSTALL, WorkerPython, chosen_python, probe

PYTHON_SETTING: Final = "spark.pyspark.python"
TWO_PHASE_SETTING: Final = "transaction.two.phase.commit.enable"
_BROKER_RESOURCE: Final = 4
OLDEST_PYTHON: Final = (3, 11)
VERSIONS: Final[Mapping[str, tuple[tuple[int, ...], tuple[int, ...] | None]]] = {
    "numpy": ((1, 26), None),
    "pandas": ((2, 2), (3,)),
    "pyarrow": ((18,), None),
}
"""Oldest supported version, and the oldest one that is too new, as in the extra ``spark``."""


class Finding(NamedTuple):
    """One line of the report."""

    is_good: bool
    text: str
    is_note: bool = False
    """Whether it does not count as a failure."""

    def as_line(self) -> str:
        """Return the line."""
        word = "ok" if self.is_good else "note" if self.is_note else "FAIL"
        return f"{word:<5}{self.text}"


def examine(settings: Mapping[str, str], servers: str | None) -> Iterator[Finding]:
    """Yield the findings, check by check."""
    chosen = [chosen_python()]
    if PYTHON_SETTING in settings:
        chosen.append((settings[PYTHON_SETTING], PYTHON_SETTING))
    for command, chosen_by in chosen:
        python = probe(command, chosen_by)
        yield from _of_python(python)
        if not python.problem:
            yield from _of_packages(python)
            yield from _of_data_sources(python)
    yield _of_java()
    yield _of_jars()
    if servers is not None:
        yield from _of_broker(servers)


def _of_python(python: WorkerPython) -> Iterator[Finding]:
    name = f"Python of Spark's workers: {python.name}"
    if python.problem:
        yield Finding(
            is_good=False, text=f"{name}: {python.problem}; set PYSPARK_PYTHON to {sys.executable}"
        )
        return
    if _numbers(python.version) < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        yield Finding(
            is_good=False,
            text=f"{name}: version {python.version}; set PYSPARK_PYTHON to a Python {oldest} or"
            " newer",
        )
        return
    yield Finding(is_good=True, text=f"{name}, version {python.version}")


def _of_packages(python: WorkerPython) -> Iterator[Finding]:
    install = f"run {python.executable} -m pip install"
    for name in ("barnabas", "pyspark"):
        version = _installed(name)
        found = python.versions.get(name)
        if found is None:
            advice = f"set PYSPARK_PYTHON to {sys.executable}, or {install} {INSTALL}"
            yield _not_imported(python, name, advice)
        elif version is not None and found != version:
            yield Finding(
                is_good=False,
                text=f"{name} {found} in {python.executable}, but {version} in {sys.executable};"
                f" {install} {name}=={version}",
            )
        else:
            yield Finding(is_good=True, text=f"{name} {found}")
    for name, (oldest, too_new) in VERSIONS.items():
        found = python.versions.get(name)
        wants = f"{name}>={_dotted(oldest)}" + (f",<{_dotted(too_new)}" if too_new else "")
        if found is None:
            yield _not_imported(python, name, f"{install} '{wants}'")
        elif _numbers(found) < oldest or (too_new and _numbers(found) >= too_new):
            yield Finding(is_good=False, text=f"{name} {found}; {install} '{wants}'")
        else:
            yield Finding(is_good=True, text=f"{name} {found}")


def _not_imported(python: WorkerPython, name: str, advice: str) -> Finding:
    return Finding(
        is_good=False,
        text=f"{name} cannot be imported by {python.executable} ({python.errors[name]}); {advice}",
    )


def _of_data_sources(python: WorkerPython) -> Iterator[Finding]:
    for name, error in python.broken_sources.items():
        yield Finding(
            is_good=False,
            text=f"{name} cannot be imported by {python.executable} ({error}), which hides every"
            f" data source in Python; repair it, or run {python.executable} -m pip uninstall it",
        )
    ours = "pyspark_barnabas"
    if ours not in (*python.sources, *python.broken_sources):
        yield Finding(
            is_good=False,
            text=f"{ours} is not installed in {python.executable}; run {python.executable} -m pip"
            f" install {INSTALL}",
        )
    elif not python.broken_sources:
        yield Finding(is_good=True, text=f"data sources: {', '.join(python.sources)}")


def _of_java() -> Finding:
    try:
        home = java_home()
    except Refusal as refusal:
        return Finding(is_good=False, text=f"Java: {refusal}")
    return Finding(is_good=True, text=f"Java {major_version(home / 'bin' / 'java')}: {home}")


def _of_jars() -> Finding:
    try:
        jars = jars_of_installed_spark()
    except Refusal as refusal:
        return Finding(is_good=False, text=f"jars of Spark's Kafka connector: {refusal}")
    return Finding(is_good=True, text=f"jars of Spark's Kafka connector: {jars[0].parent}")


def _of_broker(servers: str) -> Iterator[Finding]:
    try:
        addresses(servers, "--servers")
        with Cluster(
            servers, client_id=CLIENT_ID, timeout_ms=TIMEOUT_MS, request_timeout_ms=TIMEOUT_MS
        ) as cluster:
            is_offered = _is_allowed(cluster) if speaks_of_pins(cluster) else False
    except SinkError as error:
        yield Finding(
            is_good=False,
            text=f"brokers: {error}",
        )
        return
    yield Finding(is_good=True, text=f"brokers: {servers}")
    if is_offered:
        yield Finding(is_good=True, text="two-phase commit (KIP-939): offered")
    elif is_offered is None:
        yield Finding(
            is_good=False,
            text="two-phase commit (KIP-939): unknown, this user may not describe the broker's"
            f" settings; {TWO_PHASE_SETTING} has to be true",
            is_note=True,
        )
    else:
        yield Finding(
            is_good=False,
            text="two-phase commit (KIP-939): not offered, so a decided batch is lost if its"
            " transactions time out before they are committed; on Barnabas start the broker with"
            f" -X {TWO_PHASE_SETTING}=true, elsewhere raise transactionTimeoutMs",
            is_note=True,
        )


def _is_allowed(cluster: Cluster) -> bool | None:
    """Return the broker's setting for two-phase commit, or `None` if it may not be read."""
    deadline = cluster.deadline()
    node_id = cluster.refresh([], deadline).brokers[0].node_id
    resource = DescribeConfigsResource(_BROKER_RESOURCE, str(node_id), [TWO_PHASE_SETTING])
    (result,) = cluster.until(
        "Describing the settings of the broker",
        deadline,
        lambda: cluster.node(node_id).ask(DESCRIBE_CONFIGS, DescribeConfigsRequest([resource])),
    ).results
    if result.error_code:
        return None
    return [each.value for each in result.configs] == ["true"]


def _installed(name: str) -> str | None:
    """Return the version of a package that this Python has, or `None` if it has none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", version)[:3])


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
