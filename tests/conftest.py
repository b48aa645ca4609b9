"""Settings that all tests share."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.seeds import SEED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling
    from xdist.workermanage import WorkerController

# No deadline in either: the machine that runs the tests may be busy with others.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("deterministic", derandomize=True, max_examples=50, **_COMMON)
settings.register_profile("exhaustive", max_examples=5000, print_blob=True, **_COMMON)
# A mutant is to be killed, and nobody reads by which example.
settings.register_profile(
    "unshrunk",
    derandomize=True,
    max_examples=50,
    phases=[Phase.explicit, Phase.generate],
    **_COMMON,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "deterministic"))


COLLECTOR_THRESHOLDS = (10_000, 10, 10)
"""Most objects of a test end with it, after the 700 new objects that are usual here."""
SAID = "said"
"""What a test notes for the log of a run."""
SHARES = "shares"
"""Key, in the input of a worker, of the number of shares of all tests."""


class Listener:
    """Prints what tests have noted, where there is a terminal: not in the workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None and report.when == "teardown":
            for line in (text for key, text in report.user_properties if key == SAID):
                terminal.ensure_newline()
                terminal.write_line(f"  {line}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"SEED={SEED}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes long, so that no worker is left alone with it.

    Of the files that take long the first of each directory, then the second of each: files of one
    directory need the same, a Spark or patience, and workers beside each other should need
    different things.
    """
    slow = dict.fromkeys(item.path for item in items if item.get_closest_marker("slow"))
    seen: Counter[Path] = Counter()
    turns = {}
    for path in slow:
        turns[path] = seen[path.parent]
        seen[path.parent] += 1
    items.sort(key=lambda item: turns.get(item.path, len(turns)))
    shares = getattr(config, "workerinput", {}).get(SHARES, 1)
    if shares > 1:
        items[:] = _dealt(items, shares)


def _dealt(items: list[pytest.Item], shares: int) -> list[pytest.Item]:
    """Give each worker an equal number of the slow tests, at the beginning of its share.

    xdist gives each worker a share of tests that follow each other, and a worker that has none left
    takes them from the end of another one's share.
    """
    slow = [item for item in items if item.get_closest_marker("slow")]
    others = [item for item in items if not item.get_closest_marker("slow")]
    dealt: list[pytest.Item] = []
    for number in range(shares):
        mine = slow[number::shares]
        count = (len(items) - len(dealt)) // (shares - number) - len(mine)
        dealt += mine + others[: max(0, count)]
        del others[: max(0, count)]
    return dealt + others


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Send a worker the number of shares into which xdist divides the tests, unless by files."""
    if node.config.getvalue("dist") == "worksteal":
        node.workerinput[SHARES] = node.workerinput["workercount"]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Give files that share a Spark to one worker, where a worker has whole files."""
    if config.getvalue("dist") != "loadfile":
        return None
    from tests.spark.sharing import SharedSparkScheduling

    return SharedSparkScheduling(config, log)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark in this process, for the files of tests.spark.sharing that need no other.

    Tasks are tried again, as on a cluster.
    """
    from tests.counterparts.spark import spark_session

    session = spark_session(tmp_path_factory.mktemp("spark"), master="local[4,4]")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _hidden_spark(request: pytest.FixtureRequest) -> None:
    """Hide the Spark that other files of this worker share from a test that takes none."""
    pyspark = sys.modules.get("pyspark")
    if pyspark is not None and "spark" not in request.fixturenames:
        monkeypatch = request.getfixturevalue("monkeypatch")
        monkeypatch.setattr(pyspark.SparkContext, "_active_spark_context", None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have garbage looked for only among what the tests make: what they are made of is far more.

    While that is made nearly all of it stays, and to look through it again and again would be a
    third of the work.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(*COLLECTOR_THRESHOLDS)
        gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Let programs that a test starts be interrupted, also where this one runs in the background.

    A shell lets what it starts there ignore SIGINT, and whoever is started inherits that.
    """
    config.pluginmanager.register(Listener(config))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
