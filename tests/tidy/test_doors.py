"""Time, threads and chance come through two doors, behind which a World puts its own."""

from __future__ import annotations

import ast
from collections.abc import Iterable

import pytest

from tests.tidy.source import ROOT, Source, imported_from, parsed, sources

DOORS = ("storage/runtime/", "broker/runtime/clock.py", "broker/runtime/threads.py")
WORLDS = ("broker/testing/",)
"""Simulated machines, which provide the doors."""
PROGRAMS = (
    "broker/cli/commands/init.py",
    "broker/cli/interruption.py",
    "broker/cli/directory/store_waits.py",
)
"""Commands that talk to no broker; signals of the process."""
TOKENS = ("broker/client/kept_token.py", "broker/client/token_request.py")
"""Tokens that all threads of a process share, from servers that are not of a World."""
OF_SPARK = (
    *("spark_connector/failpoints.py", "spark_connector/monitoring/metrics_server.py"),
    *("spark_connector/session/spark_process.py", "spark_connector/session/stopping.py"),
    "spark_connector/failures/worker_python.py",
)
"""The driver's process, its signals, its HTTP port, and the processes beside it."""
OF_THE_PROCESS = ("broker/runtime/process.py", "broker/runtime/audit_file.py")
"""A watch over the daemon's memory, and logging's own thread, on which no request waits."""

MODULES = {
    *("time", "sched", "threading", "queue", "concurrent", "multiprocessing"),
    *("secrets", "random"),
}
MEMBERS = {
    *("asyncio.sleep", "asyncio.timeout", "asyncio.timeout_at", "asyncio.wait_for"),
    *("asyncio.as_completed", "asyncio.to_thread"),
    *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today"),
    *("datetime.date.today", "uuid.uuid1", "uuid.uuid4", "os.urandom", "os.getrandom"),
}
GIVEN = {"random.Random"}
"""Generator with a seed that the caller gives."""
UNLIMITED = "asyncio.wait"
"""Allowed without ``timeout``."""
METHODS_OF_LOOPS = {"call_at", "run_in_executor"}
METHODS_OF_CLOCKS = {"call_later", "time"}
"""Forbidden on a loop."""


def is_beside_the_doors(name: str) -> bool:
    return name not in GIVEN and (name in MEMBERS or name.partition(".")[0] in MODULES)


def beside_the_doors(source: Source) -> list[str]:
    """Return the lines of a file that take time, threads or chance from somewhere else."""
    names = dict(pair for node in source.nodes for pair in imported(source, node))
    return [
        f"{source.name}:{node.lineno} {ast.unparse(node)}"
        for node in source.nodes
        if any(map(is_beside_the_doors, named(source, node, names)))
        or (isinstance(node, ast.Call) and is_of_a_loop(node, names))
    ]


def imported(source: Source, node: ast.AST) -> Iterable[tuple[str, str]]:
    """Return each name that a statement imports, and what it stands for."""
    if isinstance(node, ast.Import):
        for each in node.names:
            yield (each.asname, each.name) if each.asname else (each.name.partition(".")[0],) * 2
    elif isinstance(node, ast.ImportFrom):
        module = imported_from(source, node)
        for each in node.names:
            yield each.asname or each.name, f"{module}.{each.name}"


def named(source: Source, node: ast.AST, names: dict[str, str]) -> list[str]:
    """Return the dotted names of what a node imports or uses."""
    if isinstance(node, ast.Attribute):
        return [dotted(node, names)]
    return [name for _, name in imported(source, node)]


def dotted(node: ast.expr, names: dict[str, str]) -> str:
    """Return the dotted name of an expression; empty if nothing of it was imported."""
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    owner = dotted(node.value, names) if isinstance(node, ast.Attribute) else ""
    return f"{owner}.{node.attr}" if owner else ""


def is_of_a_loop(call: ast.Call, names: dict[str, str]) -> bool:
    if dotted(call.func, names) == UNLIMITED:
        return any(each.arg == "timeout" for each in call.keywords)
    if not isinstance(call.func, ast.Attribute):
        return False
    owner = ast.unparse(call.func.value).removesuffix("()").lower()
    return call.func.attr in METHODS_OF_LOOPS or (
        call.func.attr in METHODS_OF_CLOCKS and not owner.endswith("clock")
    )


def test_time_threads_and_chance_come_through_the_doors():
    exempt = (*DOORS, *WORLDS, *OF_THE_PROCESS, *PROGRAMS, *TOKENS, *OF_SPARK)
    assert [
        place
        for source in sources("broker", "storage", "spark_connector")
        if not source.name.startswith(exempt)
        for place in beside_the_doors(source)
    ] == []


@pytest.mark.parametrize("name", [*OF_THE_PROCESS, *PROGRAMS, *TOKENS, *OF_SPARK])
def test_each_exempt_file_takes_something_beside_the_doors(name):
    assert beside_the_doors(parsed(ROOT / name))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("import time", 1),
        ("import time\ntime.monotonic()", 2),
        ("from time import perf_counter as now", 1),
        ("import concurrent.futures", 1),
        ("from random import Random", 0),
        ("import random\nrandom.Random(seed)", 1),
        ("from random import SystemRandom", 1),
        ("import asyncio\nawait asyncio.sleep(0)", 1),
        ("from asyncio import timeout_at", 1),
        ("import asyncio\nawait asyncio.wait(tasks)", 0),
        ("import asyncio\nawait asyncio.wait(tasks, timeout=1)", 1),
        ("import uuid\nuuid.UUID(int=0)", 0),
        ("import uuid\nuuid.uuid4()", 1),
        ("from datetime import UTC, datetime\ndatetime.now(UTC)", 1),
        ("from datetime import UTC, datetime\ndatetime.fromtimestamp(0, UTC)", 0),
        ("import os\nos.urandom(1)", 1),
        ("asyncio.get_running_loop().time()", 1),
        ("host.loop.call_later(1, work)", 1),
        ("host.clock.call_later(1, work)\nSystemClock().call_later(1, work)", 0),
        ("await self._loop.run_in_executor(None, work)", 1),
        ("await host.clock.sleep(1)", 0),
    ],
)
def test_use_beside_the_doors_is_found(text, count):
    path = ROOT / "broker" / "made_up.py"
    assert len(beside_the_doors(Source(path, text, ast.parse(text)))) == count
