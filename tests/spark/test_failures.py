"""Deaths of processes below a pipeline: one line with its name and the reason, and exit code 1; a
restart continues."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas.spark_connector.failpoints import VARIABLE
from examples import spark_data
from tests.counterparts.spark import DAEMON
from tests.interop.administration import admin
from tests.products import case, for_the_night
from tests.spark.command import start_command
from tests.spark.movements import committed
from tests.spark.sessions import children_of, command_of, lives
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]
RECORDS = 1500
PER_BATCH = 100
PATIENCE_S = 120
PATIENT_MS, HASTY_MS = 60_000, 12_000
"""The timeouts of pipelines that outlast an outage, and of those that do not."""
# A function in each row's way keeps a Python worker of Spark's busy.
SLOW = """
{first}
from barnabas.spark_connector import Pipeline, Sink, Source

def work(value):
    import time
    from barnabas.spark_connector.failpoints import reach
    reach("transform")
    time.sleep(0.002)
    return value

def worked_on(payments):
    from pyspark.sql.functions import udf
    return payments.select(udf(work, "binary")("value").alias("value"))

def pipeline(kind):
    return Pipeline(
        source=Source(topic="in-{name}", options={{
            "maxOffsetsPerTrigger": {per_batch},
            "kafka.default.api.timeout.ms": {timeout_ms},
            "kafka.request.timeout.ms": {answer_ms}}}),
        transform=worked_on,
        sink=Sink(sink_id=f"{name}-{{kind}}", topic=f"out-{name}-{{kind}}", kind=kind, options={{
            "kafka.delivery.timeout.ms": {timeout_ms}, "kafka.request.timeout.ms": {answer_ms}}}),
    )

for kind in {kinds}:
    globals()[kind] = pipeline(kind)
"""
SPARKS_MAIN_CLASS = b"org.apache.spark.deploy.SparkSubmit"
STOCK = "stock"
KINDS = ("two_phase", "single_transaction", STOCK)
EXACT_KINDS = KINDS[:2]
BROKER_IS_AWAY = (
    "the broker did not answer Spark's Kafka client in time",
    "nothing could be written to the partition",
)
"""The error that the test makes Spark's own client raise."""
ON_THE_WAY = {"two_phase": "C4-before", "single_transaction": "P1-before-end", STOCK: "transform"}
"""The place, by kind, where a batch has left the source, and the sink still needs the broker."""


@dataclass
class Run:
    """Pipelines of some kinds over the same payments, in a process that is about to lose a part.

    Spark takes long to start, so interrupted pipelines continue together.
    """

    directory: Path
    servers: str
    name: str
    kinds: Sequence[str]
    timeout_ms: int = PATIENT_MS
    first: str = ""
    """The first lines of the file."""
    failpoints: Path | None = None
    process: subprocess.Popen[str] = field(init=False, repr=False)

    def only(self, kind: str) -> Run:
        """Return the same with the pipeline of one kind."""
        return replace(self, kinds=(kind,))

    @property
    def names(self) -> list[str]:
        """The names of the pipelines."""
        return [f"{self.name}-{kind}" for kind in self.kinds]

    @property
    def outputs(self) -> list[str]:
        """The topics that they write."""
        return [f"out-{name}" for name in self.names]

    def start(self, *arguments: str, per_batch: int = PER_BATCH) -> Iterator[dict[str, Any]]:
        """Start it; return an iterator over the batches it reports."""
        known = {"name": self.name, "kinds": tuple(self.kinds), "first": self.first}
        times = {"timeout_ms": self.timeout_ms, "answer_ms": self.timeout_ms // 2}
        (self.directory / "slow.py").write_text(SLOW.format(**known, **times, per_batch=per_batch))
        more = {} if self.failpoints is None else {VARIABLE: str(self.failpoints)}
        self.process = start_command(self.directory, "slow.py", self.servers, *arguments, **more)
        assert self.process.stdout is not None
        return map(json.loads, self.process.stdout)

    def end(self) -> tuple[int, str]:
        """Return the exit code and what was printed on standard error."""
        return ended(self.process)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        _output, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    return process.returncode, errors


def prepared(directory: Path, servers: str, name: str, kinds: Sequence[str]) -> Run:
    """Make the topics of a run, and send the payments."""
    run = Run(directory, servers, name, kinds)
    spark_data.create_topics(servers, [f"in-{name}", *run.outputs], 2)
    payments = (each._replace(topic=f"in-{name}") for each in spark_data.payments(RECORDS))
    spark_data.send(servers, payments)
    return run


@pytest.fixture
def run(request, mortal, tmp_path):
    """Return the start of pipelines over payments, of one kind unless a test wants others."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name).strip("-")
    kinds = getattr(request, "param", KINDS[:1])
    return prepared(tmp_path, mortal.bootstrap_servers, name, kinds)


def java_of(driver: int) -> list[int]:
    """Return the Java process of Spark, not one that only printed its version."""
    started = {pid: command_of(pid).split(b"\0") for pid in children_of(driver)}
    return [
        pid
        for pid, (program, *words) in started.items()
        if program.endswith(b"/java") and SPARKS_MAIN_CLASS in words
    ]


def workers_of(driver: int) -> list[int]:
    """Return the Python workers of a driver, without the daemons that fork them."""
    (java,) = java_of(driver)
    return [worker for daemon in daemons_of(java) for worker in children_of(daemon)]


def daemons_of(java: int) -> list[int]:
    """Return the processes that fork workers, without other programs of Spark."""
    return [pid for pid in children_of(java) if DAEMON.encode() in command_of(pid)]


def kill_java(run: Run) -> None:
    (java,) = java_of(run.process.pid)
    os.kill(java, signal.SIGKILL)


def kill_workers(run: Run) -> None:
    """Kill them until the pipeline ends: Spark replaces one that dies between two batches."""
    deadline = time.monotonic() + PATIENCE_S
    while run.process.poll() is None and time.monotonic() < deadline:
        with suppress(ProcessLookupError, ValueError):  # It ends meanwhile.
            for worker in workers_of(run.process.pid):
                os.kill(worker, signal.SIGKILL)
        time.sleep(0.1)


def ended_by(run: Run, loss: Callable[[], None]) -> str:
    """Kill something after two batches; return the one line, without the pipelines' names."""
    batches = run.start()
    seen = Counter[str]()
    while any(seen[name] < 2 for name in run.names):
        batch = next(batches, None)
        assert batch is not None, run.end()
        seen[batch["pipeline"]] += 1
    loss()
    code, errors = run.end()
    assert code == 1, errors
    (line,) = errors.splitlines()
    return line.removeprefix(f"barnabas.spark: {', '.join(run.names)}: ")


def goes_on(run: Run, per_batch: int = RECORDS) -> None:
    """Run it again to its end: no batch is lost, and Barnabas sinks write none twice."""
    batches = list(run.start("--once", per_batch=per_batch))
    assert run.end() == (0, "")
    assert sum(batch["scanned_rows"] for batch in batches) > 0
    lags = {batch["pipeline"]: batch["lag"] for batch in batches}
    assert set(lags.values()) == {0}
    payments = set(range(RECORDS))
    for kind, topic in zip(run.kinds, run.outputs, strict=True):
        written = Counter(each["id"] for each in committed(run.servers, topic))
        assert written.keys() == payments, kind
        assert kind == STOCK or written.total() == RECORDS, kind


@for_the_night(
    beside="tests/real/spark_connector/test_spark_end.py"
    "::test_death_of_java_by_itself_stays_the_failure"
)
@pytest.mark.parametrize("run", [KINDS], ids=["each"], indirect=True)
def test_the_java_process_is_killed(run):
    line = ended_by(run, partial(kill_java, run))
    assert line.startswith("Spark's Java process was killed by SIGKILL; start again")
    goes_on(run)


@for_the_night(
    beside="tests/interop/sink_cores/test_crashes.py"
    "::test_losing_and_zombie_tasks_are_invisible_and_block_no_reader"
)
def test_the_python_workers_are_killed(run):
    line = ended_by(run, partial(kill_workers, run))
    assert line.startswith("a Python worker process died in the middle of a batch"), line


@for_the_night(beside="tests/interop/sink_cores/test_crashes.py::test_a_crash_at_every_step")
def test_the_driver_is_killed(run):
    """The command cannot print a line then; Java ends, too, and the next start continues."""
    batches = run.start()
    next(batches)
    (java,) = java_of(run.process.pid)
    run.process.kill()
    assert run.end() == (-signal.SIGKILL, "")
    wait_until(lambda: not lives(java), "the end of Java", seconds=PATIENCE_S)
    goes_on(run)


# ------------------------------------------------------------------------------ brokers and topics


def armed(run: Run, kind: str) -> Run:
    """Return the same with the pipeline of one kind, which can be made to pause."""
    failpoints = run.directory / f"failpoints-{kind}"
    failpoints.mkdir()
    return replace(run.only(kind), failpoints=failpoints)


def on_the_way(run: Run, loss: Callable[[], None]) -> None:
    """Lose something while a batch is between source and sink: no matter which would miss it first.

    Nor does a batch end that had all it needed.
    """
    (kind,) = run.kinds
    place, failpoints = ON_THE_WAY[kind], run.failpoints
    assert failpoints is not None
    unready = failpoints / f".{place}"
    unready.write_text("pause")
    unready.rename(failpoints / place)
    wait_until(lambda: list(failpoints.glob(f"{place}.*")), place, seconds=PATIENCE_S)
    loss()
    for pausing in failpoints.glob(f"{place}.*"):
        pausing.unlink()


@for_the_night(
    beside="tests/spark_connector/test_sender.py::test_sender_gives_up_after_its_timeout"
)
@pytest.mark.parametrize("run", [KINDS], ids=["each"], indirect=True)
def test_broker_outage_longer_than_the_sink_timeout_ends_the_query(run, mortal):
    for kind in run.kinds:
        one = armed(replace(run, timeout_ms=HASTY_MS), kind)
        try:
            line = ended_by(one, partial(on_the_way, one, mortal.kill))
        finally:
            mortal.restart()
        if kind == STOCK:
            assert line.startswith(BROKER_IS_AWAY), line
        else:
            ours = f"did not succeed within 12 seconds at {run.servers}, the last problem was"
            assert ours in line, line
    goes_on(run)


def delete(run: Run, topic: str) -> None:
    client = admin(run.servers)
    client.delete_topics([topic])[topic].result(PATIENCE_S)


@for_the_night(
    beside="tests/spark_connector/test_incarnation.py"
    "::test_a_topic_that_was_deleted_between_two_batches_is_missed"
)
@pytest.mark.parametrize("run", [(kind,) for kind in KINDS], ids=KINDS, indirect=True)
def test_the_source_topic_is_deleted(run):
    topic = f"in-{run.name}"
    line = ended_by(run, partial(delete, run, topic))
    says = f"the topic {topic}, which the pipeline reads, does not exist any more at {run.servers}"
    assert line.startswith(says), line


@for_the_night(
    beside="tests/spark_connector/test_incarnation.py"
    "::test_a_topic_that_was_deleted_between_two_batches_is_missed"
)
@pytest.mark.parametrize("run", [(kind,) for kind in EXACT_KINDS], ids=EXACT_KINDS, indirect=True)
def test_the_output_topic_is_deleted(run):
    (topic,) = run.outputs
    line = ended_by(run, partial(delete, run, topic))
    assert line.startswith(f"The topic {topic} does not exist at {run.servers}"), line


# ------------------------------------------------------------------------------------- checkpoints


@pytest.fixture(scope="module")
def finished(mortal, tmp_path_factory):
    """Pipelines that have come to their end; tests spoil copies of their checkpoints."""
    directory = tmp_path_factory.mktemp("finished")
    run = prepared(directory, mortal.bootstrap_servers, "finished", EXACT_KINDS)
    goes_on(run, per_batch=RECORDS // 3)
    return run


def another(_checkpoint: Path) -> str:
    """Name a new one."""
    return "another"


def an_old_copy(checkpoint: Path) -> str:
    """Take the last batch out of it."""
    for kind in ("offsets", "commits"):
        max((checkpoint / kind).glob("[0-9]*"), key=lambda path: int(path.name)).unlink()
    return "checkpoints"


def damage(checkpoint: Path) -> str:
    """Spoil what says whose it is."""
    (checkpoint / "metadata").write_text("{")
    return "checkpoints"


@for_the_night(
    beside="tests/interop/sink_cores/test_refusals.py"
    "::test_another_query_is_refused_and_what_was_decided_stays"
)
@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param(another, "The sink {name} was written by another query (", id="another"),
        pytest.param(an_old_copy, "The checkpoint {checkpoint} ends before batch ", id="old"),
        pytest.param(
            damage, "The checkpoint {checkpoint} does not say any more which", id="damaged"
        ),
    ],
)
@pytest.mark.parametrize("kind", EXACT_KINDS)
def test_the_checkpoint_is_another_one(finished, tmp_path, kind, change, says):
    run = replace(finished.only(kind), directory=tmp_path)
    (name,) = run.names
    shutil.copytree(finished.directory / "checkpoints", tmp_path / "checkpoints")
    checkpoint = tmp_path / "checkpoints" / name
    batches = list(run.start("--once", "--checkpoint", change(checkpoint)))
    found, errors = run.end()
    assert (found, batches) == (1, []), errors
    (line,) = errors.splitlines()
    says = says.format(name=name, checkpoint=checkpoint)
    assert line.startswith(f"barnabas.spark: {name}: {says}"), line


# --------------------------------------------------------------------------------- the first start


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        pytest.param(
            ["--conf", "spark.local.dir=/proc/nothing"],
            1,
            "{name}: Spark's Java process ended with exit code 53 when it started: Failed to",
            id="work",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            ["--conf", "spark.driver.memory=1m"],
            1,
            "{name}: Spark's Java process did not start: Too small maximum heap",
            id="memory",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            ["--conf", "spark.driver.port=x"],
            1,
            "{name}: Spark did not start: [INVALID_CONF_VALUE.TYPE_MISMATCH] The value 'x' in",
            id="setting",
        ),
        pytest.param(
            ["--ui", "--conf", "spark.ui.port={port}", "--conf", "spark.port.maxRetries=0"],
            1,
            "{name}: Spark's Java process ended with exit code 1 when it started: Failed to bind",
            id="ui",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            ["--checkpoint", "/proc/nothing"],
            1,
            "{name}: The checkpoint /proc/nothing/{name} cannot be used (No such file or",
            id="checkpoint",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            ["--conf", "spark.jars=/proc/nothing.jar"],
            2,
            "--conf spark.jars names /proc/nothing.jar, but there is no such file",
            id="jar",
            marks=pytest.mark.nightly,
        ),
        pytest.param(["--master", "local[x]"], 2, "--master local[x] is none of", id="master"),
    ],
)
def test_invalid_arguments_end_the_command_with_one_line(run, arguments, code, says):
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        known = {"name": run.names[0], "port": taken.getsockname()[1]}
        batches = list(run.start("--once", *(each.format(**known) for each in arguments)))
        found, errors = run.end()
    assert (found, batches) == (code, []), errors
    (line,) = errors.splitlines()
    assert line.startswith(f"barnabas.spark: {says.format(**known)}"), line


# --------------------------------------------------------------------- signals, and a closed output

WAITING = """
import sys, time
from barnabas.spark_connector import Pipeline, Sink, Source

def wait(place):
    if place == "{place}":
        print("waits", file=sys.stderr, flush=True)
        time.sleep(600 if place != "broker" else 0)

def waiting(payments):
    wait("transform")

wait("file")
wait("broker")
pipeline = Pipeline(
    source=Source(topic="{topic}"), transform=waiting, sink=Sink(sink_id="a", topic="{topic}-out"))
"""


@pytest.mark.parametrize(
    ("number", "place"),
    [
        case(signal.SIGINT, "file", in_test=True),
        case(signal.SIGTERM, "file", in_test=False),
        case(signal.SIGINT, "broker", in_test=False),
        case(signal.SIGTERM, "broker", in_test=True),
        case(signal.SIGINT, "start", in_test=True),
        case(signal.SIGTERM, "start", in_test=False),
        case(signal.SIGINT, "transform", in_test=False),
        case(signal.SIGTERM, "transform", in_test=False),
    ],
)
def test_before_there_is_a_batch_a_signal_ends_it_at_once(run, number, place):
    """The signal also ends the Java process that the command has just started."""
    topic = f"in-{run.name}"
    spark_data.create_topics(run.servers, [f"{topic}-out"], 2)
    (run.directory / "waiting.py").write_text(WAITING.format(place=place, topic=topic))
    servers = "127.0.0.1:1" if place == "broker" else run.servers
    process = start_command(run.directory, "waiting.py", servers)
    if place == "start":
        wait_until(lambda: java_of(process.pid), "Java", seconds=PATIENCE_S)
    else:
        assert process.stderr.readline() == "waits\n"
    java = java_of(process.pid)
    process.send_signal(number)
    assert ended(process) == (0, "")
    assert len(java) == (place in {"start", "transform"})
    wait_until(lambda: not any(map(lives, java)), "the end of Java", seconds=PATIENCE_S)


@for_the_night(
    beside="tests/spark/test_failures.py::test_before_there_is_a_batch_a_signal_ends_it_at_once"
)
@pytest.mark.parametrize("run", [KINDS], ids=["each"], indirect=True)
def test_second_signal_does_not_wait_for_an_unavailable_broker(run, mortal):
    patient = replace(run, timeout_ms=1000 * 10 * PATIENCE_S)
    for kind in run.kinds:
        one = armed(patient, kind)
        batches = one.start()
        next(batches)
        try:
            on_the_way(one, mortal.kill)
            one.process.send_signal(signal.SIGINT)
            with pytest.raises(subprocess.TimeoutExpired):
                one.process.wait(2)
            one.process.send_signal(signal.SIGINT)
            assert one.end() == (0, "")
        finally:
            mortal.restart()
    goes_on(run)


PROGRAM, JAVA, WORKERS = "program", "java", "workers"
NOTICED_S = 0.5
"""The time that the others run after one has ended."""
# A busy machine may delay the notification of the others.
TOLD_LATE = """
from barnabas.spark_connector.running import runner
from barnabas.spark_connector.session import spark_process
runner.TOLD_S = spark_process.TOLD_S = 60.0
"""


@for_the_night(
    beside="tests/real/spark_connector/test_spark_end.py"
    "::test_sigterm_of_workers_then_program_then_java_is_recognized"
)
@pytest.mark.parametrize(
    "order",
    [(PROGRAM, JAVA), (JAVA, PROGRAM), (WORKERS, JAVA, PROGRAM)],
    ids="-".join,
)
def test_a_service_that_is_ended_with_all_its_processes_has_not_failed(run, order):
    run = replace(run, first=TOLD_LATE)
    next(run.start())
    (java,) = java_of(run.process.pid)
    processes = {PROGRAM: [run.process.pid], JAVA: [java], WORKERS: daemons_of(java)}
    for each in order:
        for pid in processes[each]:
            with suppress(ProcessLookupError):  # The program ends the others, too.
                os.kill(pid, signal.SIGTERM)
        if each == JAVA != order[-1]:
            wait_until(lambda: not lives(java), "the end of Java", seconds=PATIENCE_S)
        if each != PROGRAM:  # Which would soon end the others itself.
            time.sleep(NOTICED_S)
    assert run.end() == (0, "")


@for_the_night(beside="tests/spark/test_pipeline.py::test_the_examples_write_each_result_once")
def test_closed_standard_output_ends_the_command(run):
    next(run.start())
    with run.process as process:
        process.stdout.close()
        code = process.wait(PATIENCE_S)
        line = process.stderr.read()
    assert code == 1, line
    assert line.startswith(
        "barnabas.spark: standard output was closed by its reader, so the pipelines"
    )
    assert len(line.splitlines()) == 1
