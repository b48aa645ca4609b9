"""Every fenced block of README and docs works as written, in order, on an empty broker.

A page's blocks run in one directory: `sh` as a shell would, `python` as a program. Where a line
cannot run here, ELSEWHERE names what runs it. Blocks with `text` are no input; what they show is
compared by the tests that OUTPUTS names.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Self

import pytest

from barnabas.broker.console import openapi
from barnabas.testing import Broker
from tests.checkout import ROOT
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.jars import delta_jars, spark_kafka_jars
from tests.counterparts.java import java_home
from tests.counterparts.probe import free_port
from tests.counterparts.spark import quick_java, quick_launcher
from tests.products import for_the_night
from tests.spark.tables import delta_settings, files_of_delta, parquet
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = {"sh", "python", "text"}
START_S, LINE_S = 180, 840

ELSEWHERE = {
    "make test": "this is part of it",
    "make image": "tests/image, by make image-check",
    "docker ": "tests/image, by make image-check",
    "helm ": "tests/package/test_chart.py renders the chart, by make nightly",
    "python3 -m venv": "tests/package and the set-up of this environment",
    "pip install": "tests/package and the set-up of this environment",
    "venv-pack": "nothing: there is no YARN here, as the page says",
    "spark-submit --master yarn": "tests/spark/test_clusters_elsewhere.py, as far as that goes",
    "spark-submit --master k8s": "tests/spark/test_clusters_elsewhere.py, as far as that goes",
}
"""Beginnings of lines that are not run here, and what runs them."""

OUTPUTS = {
    "architecture.md": "a picture of the layers, held to by the import contracts",
    "cluster.md": "tests/package/test_cluster_page.py, tests/postgresql/test_cluster_page.py",
    "exactly-once.md": "tests/interop/test_exactly_once.py",
    "migration.md": "tests/interop/test_access_adoption.py",
    "prove.md": "tests/interop/test_proving.py, tests/interop/test_proving_spark.py",
    "production.md": "nothing: there is no systemd here, as the page says",
    "monitoring.md": "tests/broker/metrics/test_monitoring_page.py",
    "security/audit.md": "tests/broker/security/test_documentation.py",
    "security/reference.md": "tests/broker/security/test_documentation.py",
    "spark.md": "tests/spark_connector/test_progress.py has this line",
}
"""The tests that compare the `text` of a page."""

NOT_HERE = {
    "command-line.md": "tests/real/cli/test_documentation.py compares every help text",
    "container.md": "tests/image/testcontainers_modules.py has the Java line",
    "security/oauth.md": "tests/broker/security/test_documentation.py starts a broker with it",
    "security/passwords.md": "tests/broker/security/test_documentation.py starts a broker with it",
    "security/tls.md": "tests/broker/security/test_documentation.py starts a broker with it",
}
"""Pages with blocks of another kind, and what looks after those."""

RUN_BY = {
    "README.md": "tests/interop/test_documents.py",
    "backup.md": "tests/interop/test_documents.py",
    "clients/librdkafka.md": "tests/interop/test_documents.py",
    "clients/python.md": "tests/interop/test_documents.py",
    "cluster.md": "tests/package/test_kubernetes.py",
    "console.md": "tests/interop/test_documents.py",
    "container.md": "tests/package/test_compose.py",
    "helm.md": "tests/package/test_chart.py",
    "migration.md": "tests/interop/test_documents.py",
    "monitoring.md": "tests/broker/metrics/test_monitoring_page.py",
    "prove.md": "tests/interop/test_documents.py",
    "quickstart.md": "tests/interop/test_documents.py",
    "security.md": "tests/interop/test_documents.py",
    "security/acls.md": "tests/interop/test_documents.py",
    "spark-cluster.md": "tests/interop/test_documents.py",
    "spark-recipes.md": "tests/spark_connector/test_documentation.py",
    "spark.md": "tests/interop/test_documents.py",
    "testing.md": "tests/interop/test_documents.py",
    "transactions.md": "tests/interop/test_documents.py",
}
"""The test file that runs the `sh` and `python` blocks of a page, or parts of them."""

BROKEN = ("offsets-outside", "read-uncommitted", "auto-commit")
"""Causes of what docs/prove.md breaks, in its order."""


class Block(NamedTuple):
    language: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    return [Block(*found) for found in BLOCK.findall(page.read_text())]


class Shell:
    """One directory, one broker that its lines may start, one set of environment variables."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.server = f"localhost:{self.port}"
        self.http = f"localhost:{free_port()}"
        (directory / "examples").symlink_to(ROOT / "examples")
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("KAFKA_")},
            "PYTHONPATH": f"{BarnabasProcess.packages}:{directory}",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "JAVA_HOME": str(java_home()),
            # The lines are those of the pages, so what makes a Spark start quickly is said here.
            "SPARK_SUBMIT_OPTS": shlex.join(quick_java()),
            **quick_launcher(),
            # What stands for localhost:9092, where nothing else is said.
            "BARNABAS_SERVERS": self.server,
            "KAFKA_LISTENERS": f"PLAINTEXT://{self.server}",
            "KAFKA_BARNABAS_HTTP_LISTENER": self.http,
        }
        self._broker: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._broker is not None:
            self._broker.terminate()
            assert self._broker.wait(LINE_S) == 0

    def sh(self, line: str) -> str:
        """Run a line and return its output; a new broker replaces the one before it."""
        command = line.split("#", maxsplit=1)[0].strip()
        if not command or any(command.startswith(each) for each in ELSEWHERE):
            return ""
        command = command.replace("localhost:9644", self.http)
        if command == "make run":
            command = "barnabas serve"
        if command.startswith("barnabas serve"):
            self._stop()
            self._broker = subprocess.Popen(
                shlex.split(command), cwd=self.directory, env=self.environment
            )
            self._wait_until_it_listens()
            return ""
        with subprocess.Popen(
            ["sh", "-e", "-c", command],
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as running:
            try:
                stdout, stderr = running.communicate(timeout=LINE_S)
            except BaseException:
                # With all that it has started: a Spark that is left makes what comes next late.
                os.killpg(running.pid, signal.SIGKILL)
                raise
        print(f"$ {command}\n{stdout}{stderr}")
        assert running.returncode == 0, line
        assert "Traceback" not in stderr
        return stdout

    def _wait_until_it_listens(self) -> None:
        deadline = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("localhost", self.port)).close()
            except OSError:
                assert time.monotonic() < deadline, "the broker does not start"
                time.sleep(0.05)
            else:
                return

    def python(self, text: str) -> str:
        """Run a program and return what it prints."""
        program = text.replace("localhost:9092", self.server)
        ended = subprocess.run(
            [sys.executable, "-c", program],
            cwd=self.directory,
            env=self.environment,
            timeout=LINE_S,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        print(ended.stdout)
        return ended.stdout


@pytest.fixture
def shell(tmp_path) -> Iterator[Shell]:
    with Shell(tmp_path) as running:
        yield running


def run_page(shell: Shell, page: str, before: Callable[[Shell], None] = lambda _shell: None) -> int:
    """Run the blocks of a page; return how many there were to run."""
    before(shell)
    count = 0
    for block in blocks_of(ROOT / page):
        if block.language == "sh":
            for line in block.text.replace("\\\n", "").splitlines():
                shell.sh(line)
        elif block.language == "python":
            shell.python(block.text)
        count += block.language in {"sh", "python"}
    return count


def lines_of(shell: Shell, *words: str) -> list[str]:
    ended = subprocess.run(
        ["barnabas", *words],
        cwd=shell.directory,
        env=shell.environment,
        capture_output=True,
        text=True,
        timeout=LINE_S,
        check=True,
    )
    return ended.stdout.splitlines()


def test_every_block_is_looked_after():
    for page in PAGES:
        name = page.relative_to(ROOT).as_posix().removeprefix("docs/")
        for block in blocks_of(page):
            if name in NOT_HERE and block.language not in LANGUAGES:
                continue
            assert block.language in LANGUAGES, f"{name}: {block.text[:60]}"
            if block.language == "text":
                assert OUTPUTS.get(name), f"{name}: nothing compares {block.text[:60]}"


def test_each_page_with_blocks_to_run_has_a_test_that_runs_them():
    found = {}
    for page in PAGES:
        name = page.relative_to(ROOT).as_posix().removeprefix("docs/")
        # An indented fence is not found by BLOCK: a list continues with a block at its margin.
        fences = re.findall(r"^ *```", page.read_text(), re.MULTILINE)
        outside = name != "CONTRIBUTING.md"  # It shows how a handler begins.
        assert not outside or len(fences) == 2 * len(blocks_of(page)), name
        if {each.language for each in blocks_of(page)} & {"sh", "python"}:
            found[name] = RUN_BY.get(name)
    assert found == RUN_BY
    for name, test in RUN_BY.items():
        folder, _, file = name.rpartition("/")
        text = (ROOT / test).read_text()
        assert file in text or f'"{folder}").glob("*.md")' in text, f"{test} does not read {name}"


@pytest.mark.timeout(1200)
def test_the_readme(shell):
    assert run_page(shell, "README.md") == 6
    assert invoices(shell) == list(range(1, 1001))
    # A second run of the example continues where the first one ended.
    shell.sh("seq 1001 1500 | barnabas produce orders")
    example = next(each for each in blocks_of(ROOT / "README.md") if each.language == "python")
    shell.python(example.text)
    assert invoices(shell) == list(range(1, 1501))


def invoices(shell: Shell) -> list[int]:
    words = ("consume", "invoices", "--offset", "beginning", "--exit")
    return sorted(map(int, lines_of(shell, *words)))


def some_topics(shell: Shell) -> None:
    shell.sh("barnabas serve")
    shell.sh("barnabas topics create orders")
    shell.sh("seq 1 100 | barnabas produce orders")


@pytest.mark.timeout(1200)
def test_the_quick_start(shell):
    assert run_page(shell, "docs/quickstart.md") == 6
    consumed = lines_of(shell, "consume", "orders", "--offset", "beginning", "--exit")
    assert sorted(map(int, consumed)) == list(range(1, 1002))


@pytest.mark.timeout(1200)
def test_the_client_guides(shell):
    some_topics(shell)
    for page in sorted((ROOT / "docs" / "clients").glob("*.md")):
        run_page(shell, page.relative_to(ROOT).as_posix())
    bills = lines_of(shell, "consume", "bills", "--offset", "beginning", "--exit")
    assert sorted(map(int, bills)) == list(range(1, 101))


@pytest.mark.timeout(1200)
@for_the_night(beside="tests/interop/test_documents.py::test_the_quick_start")
def test_migration(shell):
    some_topics(shell)
    with Broker() as other:
        address = other.bootstrap_servers
        (block,) = [each for each in blocks_of(ROOT / "docs/migration.md") if each.language == "sh"]
        for line in block.text.splitlines():
            shell.sh(line.replace("localhost:9093", address))
        copied = ("consume", "orders", "--offset", "beginning", "--exit", "-b", address)
        assert len(lines_of(shell, *copied)) == 100


@pytest.mark.timeout(1200)
@for_the_night(beside="tests/interop/test_documents.py::test_the_readme")
def test_backups(shell):
    assert run_page(shell, "docs/backup.md", some_topics) == 2
    # The last line has started a broker in the directory that was "put back", ./data.
    consume = ("consume", "orders", "--offset", "beginning", "--exit")
    assert len(lines_of(shell, *consume)) == 100
    shell.sh("barnabas serve -X log.dirs=new")
    assert len(lines_of(shell, *consume)) == 100


@pytest.mark.timeout(1200)
@for_the_night(beside="tests/interop/test_documents.py::test_the_readme")
def test_security(shell):
    shell.environment["KAFKA_LISTENERS"] = f"SASL_SSL://{shell.server}"
    assert run_page(shell, "docs/security.md") == 4
    assert run_page(shell, "docs/security/acls.md") == 6
    as_admin = ("--command-config", "secure/admin.properties")
    consumed = lines_of(shell, "consume", "orders", "--offset", "beginning", "--exit", *as_admin)
    assert consumed == ["one order"]
    assert lines_of(shell, "users", "list", "alice", *as_admin)[1].split()[0] == "alice"


@pytest.mark.timeout(1200)
def test_the_console(shell):
    assert run_page(shell, "docs/console.md") == 3
    served = (shell.directory / "openapi.json").read_text()
    assert json.loads(served) == openapi.document()


@pytest.mark.timeout(1200)
@for_the_night(beside="tests/interop/test_proving.py::test_mistake_is_found_by_kills_and_named")
def test_proofs(shell):
    example = next(each for each in blocks_of(ROOT / "README.md") if "send_offsets" in each.text)
    (shell.directory / "invoicing.py").write_text(example.text)
    printed = []
    for block in blocks_of(ROOT / "docs/prove.md"):
        if block.language == "sh":
            printed += [shell.sh(line) for line in block.text.splitlines()]
    right, *wrong = filter(None, printed)
    assert right.endswith("PROVED\n")
    for found, cause in zip(wrong, BROKEN, strict=True):
        assert f"docs/prove.md#{cause}" in found
        assert found.endswith("exit code 1\n")


@pytest.mark.timeout(1200)
@for_the_night(beside="tests/interop/test_documents.py::test_the_readme")
def test_transactions(shell):
    def a_transaction(shell: Shell) -> None:
        some_topics(shell)
        shell.python(
            "from kafka import KafkaProducer\n"
            "producer = KafkaProducer(bootstrap_servers='localhost:9092',"
            " transactional_id='orders-7')\n"
            "producer.init_transactions()\n"
        )

    assert run_page(shell, "docs/transactions.md", a_transaction) == 1


@pytest.mark.timeout(1800)
@for_the_night(beside="tests/spark/test_pipeline.py::test_the_examples_write_each_result_once")
def test_spark(shell):
    blocks = [block for block in blocks_of(ROOT / "docs/spark.md") if block.language == "sh"]
    *_, run = blocks[0].text.splitlines()
    for line in blocks[0].text.splitlines():
        printed = shell.sh(line).splitlines()
    assert printed[0].startswith("starting Spark (local[")
    assert printed[-1].startswith("ledger: batch ")
    check_end(shell, printed[-1])
    movements = lines_of(
        shell, "consume", "movements", "--offset", "beginning", "--exit", "--format", "json"
    )
    assert len(movements) == 200_000, "two movements for each of 100,000 payments"
    later_blocks(shell, run)


def later_blocks(shell: Shell, run: str) -> None:
    """Run the last line of the first block again, and the blocks with pipelines."""
    assert shell.sh(run).splitlines()[-1] == "ledger: nothing to do"
    # The pipelines as the page shows them, with what it leaves out.
    python = [
        block.text for block in blocks_of(ROOT / "docs/spark.md") if block.language == "python"
    ]
    # The first two are in examples/, which tests/spark/test_by_name.py runs. tests/spark/
    # test_monitor.py has the monitor, test_secured.py and spark_connector/test_security.py the
    # logins; the leak is PySpark's.
    pipeline, verify, to_parquet, read_table, to_delta, *_others = python[2:]
    counted = shell.python(verify).strip()
    assert f"it prints `{counted}`" in (ROOT / "docs/spark.md").read_text()
    shell.python(pipeline)
    shell.sh("barnabas topics create movements-delta")
    (shell.directory / "tables.py").write_text(f"{to_parquet}{to_delta}{DELTA_PIPELINE}")
    settings = delta_settings()
    jars = [*spark_kafka_jars(), *delta_jars()]
    settings["spark.jars"] = ",".join(map(str, jars))
    given = " ".join(f"--conf {key}={value}" for key, value in settings.items())
    shell.sh(f"python -m barnabas.spark run tables.py --once {given}")
    tables = shell.directory / "tables"
    for files in (str(tables / "movements"), files_of_delta(tables / "delta")):
        table = parquet(files)
        assert {"query", "batch", "key", "value"} == set(table.schema.names)
        assert table.count_rows() == 200_000
    session = "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n"
    assert shell.python(f"{session}{read_table}print(table.count())").strip() == "200000"
    shell.python(
        "from barnabas.spark import decided\n"
        "for sink_id in ('ledger-table', 'ledger-delta'):\n"
        "    assert decided(sink_id).startswith('(query = '), decided(sink_id)\n"
    )


def check_end(shell: Shell, line: str) -> None:
    """Check that everything was read and no transaction stays open.

    A commit is acknowledged when it is decided: the last line may come from a request before all of
    its markers were written, and then shows an open transaction.
    """
    assert re.search(r"lag 0, (no transaction open|transaction open \d+\.\d s)", line), line

    def are_all_ended() -> bool:
        states = [each.split()[1] for each in lines_of(shell, "transactions", "list")[1:]]
        return bool(states) and not {"Ongoing", "PrepareCommit", "PrepareAbort"} & {*states}

    wait_until(are_all_ended, "all transactions have ended", seconds=300)


DELTA_PIPELINE = """
delta = Pipeline(
    source=Source(topic="payments"),
    transform=movements,
    sink=Sink(sink_id="ledger-delta", topic="movements-delta", table=save),
)
"""


@pytest.mark.timeout(1800)
@for_the_night(
    beside="tests/interop/sink_cores/test_clusters.py"
    "::test_batches_continue_after_one_broker_is_lost_and_another_is_cut_off"
)
def test_spark_on_a_cluster(shell):
    on_cluster, submitted, yarn, kubernetes = [
        block.text.replace("\\\n", "").splitlines()
        for block in blocks_of(ROOT / "docs/spark-cluster.md")
        if block.language == "sh"
    ]
    for line in on_cluster:
        printed = shell.sh(line).splitlines()
    assert printed[0] == "starting Spark (local-cluster[2,1,1024])"
    check_end(shell, printed[-1])
    movements = lines_of(shell, "consume", "movements", "--offset", "beginning", "--exit")
    assert len(movements) == 20_000
    (line,) = submitted
    started, address, done = shell.sh(line).splitlines()
    assert (started, done) == ("starting Spark (spark-submit)", "ledger: nothing to do")
    assert address.startswith("Spark's UI is at http://")
    blocks = blocks_of(ROOT / "docs/spark-cluster.md")
    (program,) = [block.text for block in blocks if block.language == "python"]
    (shell.directory / "ledger.py").write_text(program)
    assert shell.sh("python ledger.py --once").splitlines()[-1] == "ledger: nothing to do"
    for line in (*yarn, *kubernetes):
        assert not shell.sh(line), line


SEND = """
def send_one_order(broker):
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    producer.send("orders", b"one order").get(30)
    producer.close()
"""


@pytest.mark.timeout(900)
def test_testing(tmp_path):
    """Run the blocks as one program, without the tests in them, which pytest runs."""
    blocks = [block for block in blocks_of(ROOT / "docs/testing.md") if block.language == "python"]
    programs = [block.text for block in blocks if "def test_" not in block.text]
    tests = [block.text for block in blocks if "def test_" in block.text]
    assert (len(programs), len(tests)) == (7, 2)
    names: dict[str, object] = {}
    exec(programs[0], names)
    exec(SEND, names)
    with Broker() as broker:
        broker.create_topic("orders")
        names["broker"] = broker
        for text in programs[1:]:
            exec(text, names)
    path = tmp_path / "test_page.py"
    # Fewer faults than on the page: test_prove.py and test_proving.py have more.
    shorter = "\n".join(tests).replace("seconds=5", "seconds=2")
    path.write_text(f"from kafka import KafkaProducer\n\n{shorter}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)]
    environment = {**os.environ, **BarnabasProcess.python_environment()}
    subprocess.run(command, cwd=tmp_path, env=environment, timeout=LINE_S, check=True)
