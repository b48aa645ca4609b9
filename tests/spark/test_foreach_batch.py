"""The calls of the functions for foreachBatch to their sinks; no Spark is started."""

import gc
import pickle
import weakref
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructType

from barnabas.spark_connector.errors import BrokerUnreachable, RowsMissing, WrongRows
from barnabas.spark_connector.failures.raised import Raised
from barnabas.spark_connector.ledger.prepared import Prepared
from barnabas.spark_connector.refusals import WrongUse
from barnabas.spark_connector.sinks import foreach_batch
from barnabas.spark_connector.sinks.foreach_batch import single_transaction, two_phase

PREPARED = Prepared("spark.payments.x", 7, 0, 5, 3, "query")
OFFSETS = {("in", 0): 12}


def messages():
    return pa.table({"message": [pickle.dumps(tuple(PREPARED))]})


class Noop:
    """A writer that notes that the rows are evaluated and dropped."""

    def __init__(self, asked):
        self.asked = asked

    def format(self, name):
        assert name == "noop"
        return self

    def mode(self, name):
        assert name == "append"
        return self

    def save(self):
        self.asked.append("evaluated for its state")


class Frame:
    """A batch that notes when it is evaluated."""

    schema = StructType().add("value", BinaryType())

    def __init__(self, asked, *, fails=False):
        self.asked = asked
        self.fails = fails

    sparkSession = None  # noqa: N815 - Spark's name

    @property
    def write(self):
        return Noop(self.asked)

    def mapInArrow(self, function, schema):  # noqa: N802 - Spark's name
        return self

    def toArrow(self):  # noqa: N802 - Spark's name
        self.asked.append("tasks")
        if self.fails:
            raise RuntimeError("a task failed")
        return messages()


class Sinks:
    """Makes stand-ins for both sinks, which record their calls."""

    def __init__(self):
        self.asked = []
        self.decided = -1
        self.was_begun = False
        self.measured = None
        self.fails = False
        self.reads_batches = False

    def __call__(self, options, query_id, **_more):
        self.asked.append(("made", options.sink_id, query_id))
        return self

    def recover(self, batch_id):
        self.asked.append(("recover", batch_id))

    def is_decided(self, batch_id, fingerprint, topics):
        assert topics == ["in"]
        self.asked.append(("is_decided", batch_id, len(fingerprint)))
        return batch_id <= self.decided

    def commit(self, batch_id, prepared, fingerprint, offsets):
        assert prepared == [PREPARED]
        self._decide(batch_id, fingerprint, offsets)

    def write_batch(self, batch_id, batches, fingerprint, offsets):
        if batch_id <= self.decided:
            return False
        self.asked.extend(batches if self.reads_batches else ())
        self._decide(batch_id, fingerprint, offsets)
        return True

    def begin_batch(self, batch_id, fingerprint):
        self.asked.append(("begin", batch_id, len(fingerprint)))
        return self.was_begun

    def _decide(self, batch_id, fingerprint, offsets):
        assert offsets == OFFSETS
        self.asked.append(("decide", batch_id, len(fingerprint)))
        if self.fails:
            raise RuntimeError("the sink failed")

    def abort(self, batch_id, prepared):
        self.asked.append(("abort", batch_id, prepared))

    def close(self):
        self.asked.append("close")

    def news(self):
        asked, self.asked[:] = self.asked[:], []
        return asked


MADE = ("made", "payments", "query")


@pytest.fixture
def sinks(monkeypatch):
    sinks = Sinks()
    monkeypatch.setattr(foreach_batch, "SingleTransactionSink", sinks)
    monkeypatch.setattr(foreach_batch, "Decider", sinks)
    monkeypatch.setattr(foreach_batch, "query_id_of", lambda _frame: "query")
    monkeypatch.setattr(foreach_batch, "partitions_of", lambda frame: frame.partitions())
    return sinks


@pytest.fixture
def options(tmp_path):
    (tmp_path / "offsets").mkdir()
    for batch_id in range(5):
        (tmp_path / "offsets" / str(batch_id)).write_text('v1\n{}\n{"in":{"0":12}}')
    return {
        "kafka.bootstrap.servers": "localhost:9",
        "sinkId": "payments",
        "topic": "out",
        "checkpointLocation": str(tmp_path),
    }


def test_single_transaction_gets_the_end_of_the_batch_and_starts_no_task(sinks, options):
    write = single_transaction(options)
    for batch_id in (3, 4):
        write(Frame(sinks.asked), batch_id)
    assert sinks.news() == [MADE, ("decide", 3, 64), ("decide", 4, 64)]


def test_two_phases_recover_before_the_first_task_starts(sinks, options):
    write = two_phase(options)
    write(Frame(sinks.asked), 3)
    assert sinks.news() == [MADE, ("recover", 3), ("is_decided", 3, 64), "tasks", ("decide", 3, 64)]
    write(Frame(sinks.asked), 4)
    assert sinks.news() == [("is_decided", 4, 64), "tasks", ("decide", 4, 64)]


def test_two_phases_start_no_task_for_what_is_decided(sinks, options):
    sinks.decided = 3
    write = two_phase(options)
    write(Frame(sinks.asked), 3)
    assert sinks.news() == [MADE, ("recover", 3), ("is_decided", 3, 64)]


@pytest.fixture
def stateful(options):
    """The same options, of a query that keeps state."""
    state = Path(options["checkpointLocation"]) / "state" / "0"
    state.mkdir(parents=True)
    return options


@pytest.mark.parametrize("make", [single_transaction, two_phase])
def test_decided_batch_of_stateful_query_is_evaluated_for_its_state(sinks, stateful, make):
    sinks.decided = 3
    write = make(stateful)
    write(Frame(sinks.asked), 3)
    asked = sinks.news()
    assert asked[-1] == "evaluated for its state"
    assert not [each for each in asked if "decide" in each]


@pytest.mark.parametrize("make", [single_transaction, two_phase])
def test_new_batch_of_stateful_query_is_evaluated_once(sinks, stateful, make):
    write = make(stateful)
    write(Frame(sinks.asked), 3)
    assert sinks.news()[-1] == ("decide", 3, 64)


@pytest.mark.parametrize("make", [single_transaction, two_phase])
@pytest.mark.parametrize(("was_begun", "evaluations"), [(True, 1), (False, 0)])
def test_started_batch_with_a_table_is_evaluated_for_its_state(
    sinks, stateful, make, was_begun, evaluations
):
    """The function may find the rows in the table and evaluate nothing."""
    sinks.was_begun = was_begun
    sinks.reads_batches = True
    make(stateful, saving(sinks.asked))(WithoutValue(sinks.asked), 3)
    assert sinks.news().count("evaluated for its state") == evaluations


def test_transactions_of_two_phase_tasks_are_aborted_when_one_task_fails(sinks, options):
    with pytest.raises(RuntimeError, match="a task failed"):
        two_phase(options)(Frame(sinks.asked, fails=True), 3)
    assert sinks.news()[-3:] == ["tasks", ("abort", 3, []), "close"]


def test_an_abort_that_fails_does_not_hide_what_went_wrong_first(sinks, options, monkeypatch):
    def fail(_batch_id, _prepared):
        raise BrokerUnreachable("nobody is there")

    monkeypatch.setattr(sinks, "abort", fail)
    with pytest.raises(RuntimeError, match="a task failed") as failed:
        two_phase(options)(Frame(sinks.asked, fails=True), 3)
    assert failed.value.__context__ is None


@pytest.mark.parametrize("make", [single_transaction, two_phase])
def test_failed_sink_is_not_reused(sinks, options, make):
    write = make(options)
    sinks.fails = True
    with pytest.raises(RuntimeError, match="the sink failed"):
        write(Frame(sinks.asked), 3)
    assert sinks.news()[-1] == "close"
    sinks.fails = False
    write(Frame(sinks.asked), 3)
    assert sinks.news()[0] == MADE


def test_a_sink_is_closed_too_when_spark_fails_behind_its_last_row(sinks, options, monkeypatch):
    class Rows:
        def close(self):
            raise RuntimeError("the rows failed")

    write = single_transaction(options)
    monkeypatch.setattr(write, "_encoded", lambda _frame: Rows())
    with pytest.raises(RuntimeError, match="the rows failed"):
        write(Frame(sinks.asked), 3)
    assert sinks.news() == [MADE, ("decide", 3, 64), "close"]


@pytest.mark.parametrize("make", [single_transaction, two_phase])
def test_sink_is_closed_when_spark_drops_it_and_not_before(sinks, options, make):
    """At the end of a query Spark does no more than that, some time after it."""
    write = make(options)
    for batch_id in (3, 4):
        write(Frame(sinks.asked), batch_id)
    assert "close" not in sinks.news()
    gone = weakref.ref(write)
    del write
    gc.collect()
    assert gone() is None
    assert sinks.news() == ["close"]


def message(*fields):
    return pickle.dumps(fields)


MESSAGES = [message("out", 0, 3, bytearray(b"a")), message("out", 1, 2, bytearray(b"b"))]


def end_mark(count):
    return message("", -1, count, bytearray())


@pytest.mark.parametrize(
    ("messages", "is_whole"),
    [
        ([*MESSAGES, end_mark(2)], True),
        ([end_mark(0)], True),
        (MESSAGES, False),
        ([], False),
        ([MESSAGES[0], end_mark(2)], False),
        ([*MESSAGES, end_mark(0)], False),
    ],
    ids=["whole", "empty", "no-mark", "nothing", "batch-missing", "mark-of-another"],
)
def test_partition_without_its_end_mark_is_refused(messages, is_whole):
    """The socket from the JVM ends where the JVM ends, and PySpark returns what has come."""
    if is_whole:
        assert [each.topic for each in foreach_batch._whole(iter(messages))] == ["out"] * (
            len(messages) - 1
        )
    else:
        with pytest.raises(RowsMissing, match="nothing of the batch is visible"):
            list(foreach_batch._whole(iter(messages)))


# ---------------------------------------------------------------------------------------- tables


class FromTable(Frame):
    """The rows of a batch in a table."""

    def toArrow(self):  # noqa: N802 - Spark's name
        self.asked.append("tasks from the table")
        return messages()

    def partitions(self):
        self.asked.append("rows from the table")
        return iter(())


class WithoutValue(Frame):
    schema = StructType().add("account", BinaryType())


def saving(asked, found=FromTable):
    def save(rows, batch):
        assert not isinstance(rows, FromTable)
        asked.append(("save", *batch))
        return found(asked) if found is FromTable else found

    return save


WRITES = {
    single_transaction: ["rows from the table", ("decide", 3, 64)],
    two_phase: ["tasks from the table", ("decide", 3, 64)],
}


@pytest.mark.parametrize("make", WRITES)
def test_table_is_written_after_the_batch_started_and_before_the_topic(sinks, options, make):
    sinks.reads_batches = True
    write = make(options, saving(sinks.asked))
    write(WithoutValue(sinks.asked), 3)
    assert [each for each in sinks.news() if each != ("recover", 3)] == [
        MADE,
        ("is_decided", 3, 64),
        ("begin", 3, 64),
        ("save", "query", 3),
        *WRITES[make],
    ]


@pytest.mark.parametrize("make", WRITES)
def test_decided_batch_is_written_neither_to_the_table_nor_to_the_topic(sinks, options, make):
    sinks.decided = 3
    write = make(options, saving(sinks.asked))
    write(Frame(sinks.asked), 3)
    assert sinks.news()[-1] == ("is_decided", 3, 64)


@pytest.mark.parametrize("make", WRITES)
def test_result_of_a_table_must_be_rows_for_the_topic(sinks, options, make):
    with pytest.raises(WrongUse, match="table returned NoneType, not a DataFrame: return the rows"):
        make(options, saving(sinks.asked, None))(Frame(sinks.asked), 3)
    assert sinks.news()[-2:] == [("save", "query", 3), "close"]
    with pytest.raises(WrongRows, match="Required attribute 'value' not found"):
        make(options, saving(sinks.asked, WithoutValue(sinks.asked)))(Frame(sinks.asked), 3)


@pytest.mark.parametrize("make", WRITES)
def test_a_table_that_fails_is_said_to_be_it(sinks, options, make):
    def save(_rows, _batch):
        raise PermissionError("not there")

    with pytest.raises(
        Raised, match=r"table raised PermissionError: not there \(test_foreach_batch"
    ):
        make(options, save)(Frame(sinks.asked), 3)
    assert sinks.news()[-1] == "close"
