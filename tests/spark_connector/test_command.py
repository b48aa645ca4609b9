"""The command: files it takes, options it refuses, one line for everything that goes wrong."""

import re
import signal
import sys
from dataclasses import dataclass, field

import pytest

from barnabas.broker.client.security_keys import SECRETS
from barnabas.spark import run as run_program
from barnabas.spark_connector import Pipeline, Sink, Source
from barnabas.spark_connector.refusals import WrongUse
from barnabas.spark_connector.running.command import main, pipelines_of
from barnabas.spark_connector.running.failures import QueryFailed
from barnabas.spark_connector.running.runner import (
    STARTS_MAX,
    Running,
    check_frame,
    checkpoint_of,
    watch,
)
from barnabas.spark_connector.session.spark_log import SparkLog
from barnabas.spark_connector.session.spark_process import check_master, settings_of
from barnabas.spark_connector.session.stopping import Stop, within
from barnabas.storage.runtime.threads import Event, new_event, start_thread
from barnabas.testing import Broker
from tests.waiting import wait_until

HEAD = "from barnabas.spark_connector import Pipeline, Sink, Source\n"
ONE = 'a = Pipeline(source=Source(topic="in"), sink=Sink(sink_id="{}", topic="out"))\n'


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "my_pipeline.py"
        path.write_text(text)
        return path

    return write


@pytest.fixture(autouse=True)
def _signals_and_servers(monkeypatch):
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    monkeypatch.setenv("BARNABAS_SERVERS", "127.0.0.1:1")
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def run(capsys, *arguments):
    """Return the exit code and the line on standard error."""
    try:
        code = main(["run", *map(str, arguments)])
    except SystemExit as ended:
        code = ended.code
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    return code, lines[0]


def test_a_file_may_have_several_pipelines_and_import_its_neighbours(file, tmp_path):
    (tmp_path / "neighbour_of_it.py").write_text("NAME = 'b'\n")
    again = HEAD + "from neighbour_of_it import NAME\n" + ONE.format("a") + "same = a\n"
    found = pipelines_of(file(again + ONE.format("b").replace("a =", "other =")))
    assert {name: each.name for name, each in found.items()} == {
        "a": "a",
        "same": "a",
        "other": "b",
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("x = 1\n", "has no Pipeline at its top level", id="none"),
        pytest.param("x = = 1\n", "line 1: invalid syntax", id="syntax"),
        pytest.param("x = 1\ny = x / 0\n", "ZeroDivisionError: line 2: division", id="raises"),
        pytest.param("import no_such_module\n", "ModuleNotFoundError: line 1: No mod", id="module"),
        pytest.param(
            "raise RuntimeError('[SESSION_OR_CONTEXT_NOT_EXISTS] SparkContext')\n",
            "line 1: this needs Spark, which starts after the file was read",
            id="needs-spark",
        ),
        pytest.param(
            "from pyspark.sql import functions as F\nBIG = F.col('value') > 5\n",
            "line 2: this needs Spark, which starts after the file was read",
            id="column",
        ),
        pytest.param("assert False\n", "AssertionError: line 1", id="an assertion of its own"),
        pytest.param("raise SystemExit(3)\n", "it ends Python itself", id="exit"),
    ],
)
def test_a_file_that_is_wrong(file, capsys, text, says):
    code, line = run(capsys, file(text))
    assert (code, says in line) == (2, True), line


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["--conf", "novalue"], "--conf novalue is not KEY=VALUE", id="conf"),
        *(
            pytest.param(
                ["--metrics-port", text], f"--metrics-port {text} is not PORT or HOST:PORT"
            )
            for text in ("x", ":9108", "65536", "localhost:", "-1", "1e3")
        ),
        pytest.param(["--format", "xml"], "invalid choice: 'xml'", id="format"),
        pytest.param(["--twice"], "unrecognized arguments: --twice", id="unknown"),
        pytest.param(
            ["--pipeline", "z"], "pipeline 'z' does not exist; the file has a", id="pipeline"
        ),
        pytest.param(
            ["--conf", "spark.asyncProgressTrackingEnabled=true"], "asynchronous", id="async"
        ),
        pytest.param(["--servers", "nowhere"], "write it as host:port", id="servers"),
        pytest.param(["--packages", "avro"], "is not group:artifact:version", id="packages"),
        *(
            pytest.param(["--master", master], "is none of Spark's: use local[N]", id=master)
            for master in ("x", "local[x]", "", "localhost:7077", "local[2", "spark://")
        ),
    ],
)
def test_usage_errors_are_2(file, capsys, arguments, says):
    code, line = run(capsys, file(HEAD + ONE.format("a")), *arguments)
    assert (code, says in line) == (2, True), line
    assert line.startswith("barnabas.spark: ")


@pytest.mark.parametrize(
    "master",
    [
        *("local", "local[4]", "local[*]", "local[*, 3]", "local[2,4]", "local-cluster[2,1,1024]"),
        *("spark://a:7077,b:7077", "k8s://https://host:443", "yarn"),
    ],
)
def test_masters_of_spark(master):
    check_master(master)


def test_arguments_of_the_wrong_kind_are_2(file, capsys):
    code, line = run(capsys, file(HEAD + ONE.format("a").replace('"in"', "5")))
    says = "the source's topic= must be a topic's name, or a list of them, but is 5"
    assert (code, line) == (2, f"barnabas.spark: pipeline a: {says}")


def test_no_file(capsys, tmp_path):
    assert run(capsys, tmp_path / "none.py") == (
        2,
        f"barnabas.spark: file {tmp_path / 'none.py'} does not exist",
    )


def end_of_program(capsys, *pipelines, arguments=()):
    """Return the exit code of a file that ends with run(), and the line on standard error."""
    with pytest.raises(SystemExit) as ended:
        run_program(*pipelines, arguments=arguments)
    (line,) = capsys.readouterr().err.splitlines()
    return ended.value.code, line


def test_a_program_is_given_pipelines_and_the_options_of_the_command(capsys, monkeypatch):
    one = Pipeline(source=Source(topic="in"), sink=Sink(sink_id="a", topic="out"))
    assert end_of_program(capsys) == (2, "barnabas.spark: run() was given no Pipeline")
    assert "run() was given str, not a Pipeline" in end_of_program(capsys, "a")[1]
    shapeless = Pipeline(source=None, sink=Sink(sink_id="a"))
    code, line = end_of_program(capsys, one, shapeless)
    assert (code, "pipeline 2: the source= must be a Source(...)" in line) == (2, True)
    assert "2 pipelines have the sink id 'a'" in end_of_program(capsys, one, one)[1]
    arguments = ["--pipeline", "b"]
    assert (
        "pipeline 'b' does not exist; the file has a"
        in end_of_program(capsys, one, arguments=arguments)[1]
    )
    code, line = end_of_program(capsys, one, arguments=["another.py"])
    assert (code, "unrecognized arguments: another.py" in line) == (2, True)
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    for arguments in (["--master", "local[1]"], ["--conf", "a=b"], ["--packages", "a"], ["--ui"]):
        code, line = end_of_program(capsys, one, arguments=arguments)
        assert (code, line.partition(":")[2]) == (
            2,
            " --master, --packages, --conf and --ui are for spark-submit to say here",
        )


def test_where_the_connectors_jars_are(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(
        "barnabas.spark_connector.running.command.jars_of_installed_spark",
        lambda: [tmp_path / "one.jar", tmp_path / "two.jar"],
    )
    assert main(["jars"]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/one.jar,{tmp_path}/two.jar\n"


def test_two_pipelines_of_one_sink(file, capsys):
    text = HEAD + ONE.format("a") + ONE.format("a").replace("a =", "b =")
    code, line = run(capsys, file(text))
    assert (code, "2 pipelines have the sink id 'a'" in line) == (2, True)


def test_error_found_by_the_broker_exits_with_1_without_spark(file, capsys):
    with Broker() as broker:
        servers = broker.bootstrap_servers
        code, line = run(capsys, file(HEAD + ONE.format("a")), "--servers", servers)
    assert (code, "reads the topic in, which does not exist" in line) == (1, True)


# ------------------------------------------------------------------------------------- the watch


@dataclass
class FakeQuery:
    """A query with batches that a test ends."""

    isActive: bool = True  # noqa: N815 - Spark's names
    status: dict = field(default_factory=lambda: {"isTriggerActive": True})
    recentProgress: list = field(default_factory=list)  # noqa: N815
    failure: Exception | None = None
    stopped: Event = field(default_factory=new_event)

    @property
    def lastProgress(self):  # noqa: N802
        return self.recentProgress[-1] if self.recentProgress else None

    def exception(self):
        return self.failure

    def stop(self):
        self.isActive = False
        self.stopped.set()

    def end_batch(self, number):
        report = {
            "id": "query",
            "batchId": number,
            "timestamp": "2026-11-21T18:00:00Z",
            "durationMs": {},
        }
        report["durationMs"]["addBatch"] = 1
        self.recentProgress = [*self.recentProgress, report]


@pytest.fixture
def query():
    return FakeQuery()


@pytest.fixture
def watching(query):
    """Watch the query in a thread; yields what asks for the end, what was reported, the errors."""
    pipeline = Pipeline(source=Source(topic="in"), sink=Sink(sink_id="a", topic="out"))
    running = Running.of(pipeline, query, "/checkpoints/a")
    stop, reported, errors = Stop(), [], []

    def work():
        try:
            watch([running], lambda batch: reported.append(batch.batch), stop)
        except QueryFailed as error:
            errors.append(str(error))

    thread = start_thread("watches", work)
    yield stop, reported, errors, thread
    stop.ask()
    query.stop()
    thread.join(60)
    assert not thread.is_alive()


def test_the_running_batch_ends_before_the_query_is_stopped(query, watching):
    stop, reported, errors, thread = watching
    query.end_batch(0)
    wait_until(lambda: reported == [0])
    stop.ask()
    assert not query.stopped.wait(0.3)
    query.end_batch(1)
    thread.join(60)
    assert query.stopped.is_set()
    assert (reported, errors) == ([0, 1], [])


def test_a_query_without_a_running_batch_is_stopped_at_once(query, watching):
    stop, _reported, errors, thread = watching
    query.status = {"isTriggerActive": False}
    stop.ask()
    thread.join(60)
    assert query.stopped.is_set()
    assert errors == []


def test_a_query_that_ends_by_itself(query, watching):
    _stop, reported, errors, thread = watching
    query.end_batch(0)
    query.isActive = False
    thread.join(60)
    assert (reported, errors) == ([0], [])


def test_a_query_that_fails(query, watching):
    _stop, _reported, errors, thread = watching
    query.failure = RuntimeError(
        "x\nbarnabas.spark_connector.errors.Fenced: Another driver runs.\n"
    )
    thread.join(60)
    assert errors == ["a: Another driver runs."]


class View:
    """Brokers that miss a topic."""

    def missing_topic(self):
        return "the topic in, which the pipeline reads, does not exist any more at a:1"


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        ("UNKNOWN_TOPIC_OR_PARTITION", "the topic in, which the pipeline reads, does not exist"),
        ("File file:/c/a/commits does not exist", "the checkpoint cannot be used any more: File"),
        (
            "barnabas.spark_connector.errors.Recreated: The checkpoint /c/a has no file x.",
            "The checkpoint /c/a has no file x.",
        ),
        ("something else", "something else"),
    ],
)
def test_failure_gets_an_explanation_beside_that_of_spark(query, failure, says):
    pipeline = Pipeline(source=Source(topic="in"), sink=Sink(sink_id="a", topic="out"))
    running = Running.of(pipeline, query, "/c/a", View())
    assert str(running.failed_with(RuntimeError(failure))).startswith(f"a: {says}")


CONCURRENT = RuntimeError("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log.")
OVERTAKEN = RuntimeError(
    "Reason:\nbarnabas.spark_connector.errors.Overtaken: Another driver is at work.\n"
)


def running_with_starts(query, following):
    """Return a running pipeline, and the queries that are started after its first one."""
    pipeline = Pipeline(source=Source(topic="in"), sink=Sink(sink_id="a", topic="out"))
    return Running.of(pipeline, query, "/checkpoints/a", None, lambda: following.pop(0))


@pytest.mark.parametrize("failure", [CONCURRENT, OVERTAKEN], ids=["spark", "sink"])
def test_a_query_that_another_driver_came_in_between_of_is_started_again(failure):
    first, second = FakeQuery(isActive=False, failure=failure), FakeQuery()
    following = [second]
    stop, reported = Stop(), []
    second.end_batch(4)
    second.isActive = False
    watch([running_with_starts(first, following)], lambda each: reported.append(each.batch), stop)
    assert (following, reported) == ([], [4])


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        (CONCURRENT, "a: another driver runs this pipeline with the same checkpoint"),
        (OVERTAKEN, "a: Another driver is at work."),
        (RuntimeError("barnabas.spark_connector.errors.Fenced: Another one.\n"), "a: Another one."),
    ],
    ids=["spark", "sink", "fenced"],
)
def test_a_query_that_has_ended_a_batch_or_was_fenced_is_not_started_again(failure, says):
    query = FakeQuery(isActive=False, failure=failure)
    if "Fenced" not in str(failure):
        query.end_batch(3)
    with pytest.raises(QueryFailed) as failed:
        watch([running_with_starts(query, [FakeQuery()])], lambda _each: None, Stop())
    assert str(failed.value).startswith(says)


def test_query_is_not_restarted_forever():
    queries = [FakeQuery(isActive=False, failure=CONCURRENT) for _ in range(STARTS_MAX + 1)]
    with pytest.raises(QueryFailed, match="another driver runs this pipeline"):
        watch([running_with_starts(queries[0], queries[1:])], lambda _each: None, Stop())


def test_late_action_is_not_awaited():
    ended, go_on = new_event(), new_event()
    try:
        assert not within(0.1, [ended.set, go_on.wait])
        assert ended.wait(60)
    finally:
        go_on.set()

    def fail():
        raise RuntimeError("gone")

    assert within(60, [fail, ended.set])


# ------------------------------------------------------------------------------ around the query


@dataclass
class FakeFrame:
    isStreaming: bool  # noqa: N815
    dtypes: list


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (None, "transform returned NoneType, not a DataFrame"),
        (FakeFrame(False, [("value", "string")]), "transform returned a table, not a stream"),
        (FakeFrame(True, [("key", "string")]), "the column 'value' is missing"),
    ],
    ids=["nothing", "table", "columns"],
)
def test_result_of_a_transform_is_checked(frame, says):
    each = Pipeline(source=Source(topic="in"), sink=Sink(sink_id="a", topic="out"))
    with pytest.raises(WrongUse) as refused:
        check_frame(each, frame)
    assert str(refused.value).startswith(says)
    check_frame(each, FakeFrame(True, [("value", "string")]))


def test_where_checkpoints_are(tmp_path):
    each = Pipeline(source=Source(topic="in"), sink=Sink(sink_id="a"))
    assert checkpoint_of(str(tmp_path), each) == f"{tmp_path}/a"
    assert checkpoint_of("hdfs://host/dir/", each) == "hdfs://host/dir/a"


def test_settings_of_a_user_override_defaults():
    assert settings_of("local[2]", {})["spark.sql.shuffle.partitions"] == "8"
    assert settings_of("local[2]", {"spark.ui.enabled": "true"})["spark.ui.enabled"] == "true"
    assert "spark.sql.shuffle.partitions" not in settings_of("spark://host:7077", {})


def test_the_log_stays_only_where_something_has_failed():
    with SparkLog(verbose=False) as log:
        assert log.keep() is None  # Spark has said nothing.
        log.popen_arguments()["stderr"].write(b"trouble\n")
        log.popen_arguments()["stderr"].flush()
        kept = log.keep()
    assert kept.read_bytes() == b"trouble\n"
    kept.unlink()
    with SparkLog(verbose=False) as log:
        log.popen_arguments()["stderr"].write(b"all is well\n")
        path = log._path
    assert not path.exists()
    with SparkLog(verbose=True) as log:
        assert log.popen_arguments() == {"stdout": 2}


def test_a_refusal_inside_the_file_is_its_own_sentence(file):
    refusals = "barnabas.spark_connector.refusals"
    text = f"from {refusals} import WrongUse\nraise WrongUse('said by the file')\n"
    with pytest.raises(WrongUse, match=r"^said by the file$"):
        pipelines_of(file(text))


def test_spark_is_to_show_no_secret():
    pattern = settings_of("local[2]", {})["spark.redaction.regex"]
    assert [key for key in SECRETS if not re.search(pattern, f"kafka.{key}")] == []
    assert not re.search(pattern, "kafka.ssl.keystore.location")
