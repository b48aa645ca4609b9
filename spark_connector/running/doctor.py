"""`python -m barnabas.spark doctor`: whether Spark can run the sinks here, one line a check."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.broker.client.deadline import Deadline
from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.spark_connector.cluster.cluster import Cluster
from barnabas.spark_connector.cluster.requests import speaks_of_pins
from barnabas.spark_connector.errors import BrokerUnreachable, SinkError
from barnabas.spark_connector.failures.worker_python import (
    INSTALL,
    PACKAGES,
    WorkerPython,
    chosen_python,
    probe,
    task_python,
)
from barnabas.spark_connector.pipelines.preflight import CLIENT_ID
from barnabas.spark_connector.refusals import Refusal
from barnabas.spark_connector.session.jars import jars_of_installed_spark
from barnabas.spark_connector.session.java import (
    MINIMUM_MAJOR_VERSION,
    java_home,
    java_of_launcher,
    major_version,
)
from barnabas.spark_connector.settings.options import addresses
from barnabas.spark_connector.settings.servers import DEFAULT_SERVERS_VARIABLE

PYTHON_SETTING: Final = "spark.pyspark.python"
TWO_PHASE_SETTING: Final = "transaction.two.phase.commit.enable"
TIMEOUT_MS = 5_000
DATA_SOURCES: Final = "data sources"
TASKS: Final = "tasks"
OUR_SOURCE: Final = "pyspark_barnabas"
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
    sources, tasks = chosen_python(), task_python()
    if PYTHON_SETTING in settings:
        tasks = settings[PYTHON_SETTING], PYTHON_SETTING
    if _program(sources) == _program(tasks):
        chosen_by = dict.fromkeys((sources[1], tasks[1]))
        yield from _of_worker("data sources and tasks", probe(sources[0], *chosen_by))
    else:
        yield from _of_worker(DATA_SOURCES, probe(*sources))
        yield from _of_worker(TASKS, probe(*tasks, has_sources=False))
    yield _of_java()
    yield _of_jars()
    yield from _of_brokers(servers)


def _program(chosen: tuple[str, str]) -> str:
    # Links are not followed: the Python of a virtual environment is a link to another one.
    return shutil.which(chosen[0]) or chosen[0]


def _of_worker(workers: str, python: WorkerPython) -> Iterator[Finding]:
    yield _of_python(workers, python)
    if python.problem:
        return
    has_sources = workers != TASKS  # The only workers that Spark lets import all `pyspark_*`.
    yield from _of_missing(python, has_sources=has_sources)
    yield from _of_versions(python)
    if has_sources:
        yield from _of_data_sources(python)


def _of_python(workers: str, python: WorkerPython) -> Finding:
    name = f"Python of {workers}: {python.name}"
    if python.problem:
        return Finding(is_good=False, text=f"{name}: {python.problem}; {python.remedy}")
    if _numbers(python.version) < OLDEST_PYTHON:
        return Finding(
            is_good=False,
            text=f"{name}: version {python.version}, older than {_dotted(OLDEST_PYTHON)};"
            f" {python.remedy}",
        )
    return Finding(is_good=True, text=f"{name}, version {python.version}")


def _of_missing(python: WorkerPython, *, has_sources: bool) -> Iterator[Finding]:
    missing = [
        name if error == f"ModuleNotFoundError: No module named '{name}'" else f"{name} ({error})"
        for name, error in python.errors.items()
    ]
    if has_sources and OUR_SOURCE not in python.sources:
        missing.append(OUR_SOURCE)
    elif has_sources and not missing and OUR_SOURCE in python.broken_sources:
        missing.append(f"{OUR_SOURCE} ({python.broken_sources[OUR_SOURCE]})")
    if missing:
        is_this = python.executable == sys.executable
        advice = INSTALL if is_this else f"{python.remedy}, or {INSTALL}"
        yield Finding(
            is_good=False,
            text=f"{python.executable} cannot import {', '.join(missing)}; {advice}",
        )


def _of_versions(python: WorkerPython) -> Iterator[Finding]:
    for name, found in python.versions.items():
        advice = _version_advice(python, name, found)
        if advice is not None:
            yield Finding(is_good=False, text=f"{name} {found} in {python.executable}, {advice}")
        elif name in PACKAGES:
            yield Finding(is_good=True, text=f"{name} {found}")


def _version_advice(python: WorkerPython, name: str, found: str) -> str | None:
    """Return the problem with the version of a package and its remedy, or `None`."""
    install = f"run {python.executable} -m pip install"
    if name in {"barnabas", "pyspark"}:
        version = _installed(name)
        if version in {None, found}:
            return None
        advice = (
            f"{install} pyspark=={version}"
            if name == "pyspark"
            else f"install the wheel of Barnabas {version} there"
        )
        return f"but {version} in {sys.executable}; {advice}"
    if name not in VERSIONS:
        return None
    oldest, too_new = VERSIONS[name]
    if oldest <= _numbers(found) and not (too_new and _numbers(found) >= too_new):
        return None
    wanted = f"{name}>={_dotted(oldest)}" + (f",<{_dotted(too_new)}" if too_new else "")
    return f"which is not supported; {install} '{wanted}'"


def _of_data_sources(python: WorkerPython) -> Iterator[Finding]:
    for name, error in python.broken_sources.items():
        if name != OUR_SOURCE:
            yield Finding(
                is_good=False,
                text=f"{name} cannot be imported by {python.executable} ({error}), which hides"
                " every data source in Python; repair or uninstall the package that has it",
            )
    if python.is_complete and OUR_SOURCE in python.sources and not python.broken_sources:
        yield Finding(is_good=True, text=f"data sources: {', '.join(python.sources)}")


def _of_java() -> Finding:
    launched = java_of_launcher()
    version = major_version(launched) if launched else 0
    if launched and version >= MINIMUM_MAJOR_VERSION:
        return Finding(is_good=True, text=f"Java {version}: {_home_of(launched)}")
    try:
        home = java_home()
    except Refusal as refusal:
        return Finding(is_good=False, text=f"Java: {refusal}")
    if configured := os.environ.get("JAVA_HOME"):
        problem = f"is Java {version}" if version else "has no bin/java that runs"
        return Finding(
            is_good=False,
            text=f"Java: JAVA_HOME={configured} {problem}, and spark-submit uses no other; set"
            f" JAVA_HOME={home}",
        )
    on_path = f"the PATH has Java {version}" if version else "the PATH has none"
    return Finding(
        is_good=False,
        text=f"Java {major_version(home / 'bin' / 'java')}: {home}, but {on_path};"
        f" spark-submit and spark-pipelines need JAVA_HOME={home}",
        is_note=True,
    )


def _home_of(executable: Path) -> Path:
    return executable.resolve().parent.parent


def _of_jars() -> Finding:
    try:
        jars = jars_of_installed_spark()
    except Refusal as refusal:
        return Finding(is_good=False, text=f"jars of Spark's Kafka connector: {refusal}")
    return Finding(is_good=True, text=f"jars of Spark's Kafka connector: {jars[0].parent}")


class _Examined(Cluster):
    """Brokers that no query uses."""

    def gave_up(self, action: str, deadline: Deadline, problem: object) -> BrokerUnreachable:
        """Return the error for brokers that do not respond."""
        return BrokerUnreachable(
            f"{self.servers} sent no response within {deadline.timeout_ms / 1000:g} s ({action}:"
            f" {problem}); check the address, and that the broker is running"
        )


def _of_brokers(given: str | None) -> Iterator[Finding]:
    named_by = "--servers" if given is not None else DEFAULT_SERVERS_VARIABLE
    servers = given if given is not None else os.environ.get(DEFAULT_SERVERS_VARIABLE)
    if servers is None:
        yield Finding(
            is_good=False,
            text=f"brokers: not checked; name them with --servers or {DEFAULT_SERVERS_VARIABLE}",
            is_note=True,
        )
        return
    try:
        addresses(servers, named_by)
        with _Examined(
            servers, client_id=CLIENT_ID, timeout_ms=TIMEOUT_MS, request_timeout_ms=TIMEOUT_MS
        ) as cluster:
            is_offered = _is_allowed(cluster) if speaks_of_pins(cluster) else False
    except SinkError as error:
        yield Finding(is_good=False, text=f"brokers: {error}")
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
