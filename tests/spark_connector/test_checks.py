"""Every wrong option has its sentence, before Spark is started."""

from unittest.mock import MagicMock

import pytest

from barnabas.spark_connector import Pipeline, Sink, Source
from barnabas.spark_connector.errors import WrongOption
from barnabas.spark_connector.pipelines.checks import (
    check_columns,
    check_configuration,
    check_pipelines,
    with_checked_table,
)
from barnabas.spark_connector.refusals import WrongUse

RIGHT = [("key", "string"), ("value", "binary")]


def pipeline(source=None, **sink):
    settings = {"sink_id": "a", "topic": "out"} | sink
    return Pipeline(source=source or Source(topic="in"), sink=Sink(**settings))


@pytest.mark.parametrize("kind", ["auto", "two_phase", "single_transaction", "stock"])
def test_a_pipeline_that_is_right(kind):
    each = pipeline(kind=kind, trigger={"processingTime": "1 second"})
    check_pipelines([each, pipeline(sink_id="b")])
    check_configuration([each], {"spark.driver.memory": "1g"})


@pytest.mark.parametrize(
    ("sink", "says"),
    [
        pytest.param({"kind": "triple"}, "kind of sink 'triple' does not exist", id="kind"),
        pytest.param({"sink_id": "a b"}, "sink id 'a b' may only have letters", id="sink-id"),
        pytest.param({"output_mode": "all"}, "output mode 'all' does not exist", id="mode"),
        pytest.param({"trigger": {"every": "1s"}}, "pipeline a: .* none of Spark's", id="trigger"),
        pytest.param(
            {"trigger": {"processingTime": "1 second", "once": True}}, "none of Spark's", id="two"
        ),
        *(
            pytest.param(
                {"trigger": {name: value}},
                f"pipeline a: the trigger .*{name}.* has a value that cannot be:"
                " use {'processingTime': '5 seconds'}, {'availableNow': True}",
                id=f"{name}-{value}",
            )
            for name, value in [
                ("processingTime", "soon"),
                ("processingTime", 5),
                ("processingTime", ""),
                ("processingTime", "-1 second"),
                ("processingTime", "1 month"),
                ("processingTime", None),
                ("availableNow", False),
                ("availableNow", "yes"),
                ("once", 5),
            ]
        ),
        pytest.param({"trigger": {"realTime": "5 s"}}, "real-time mode cannot", id="real-time"),
        pytest.param({"trigger": {"continuous": "1 s"}}, "continuous trigger", id="continuous"),
        pytest.param(
            {"options": {"asyncprogresstrackingenabled": True}},
            "asynchronous progress tracking cannot",
            id="async",
        ),
        pytest.param(
            {"options": {"kafka.acks": "1"}},
            "kafka.acks has no effect: every record is acknowledged",
            id="acks",
        ),
        pytest.param(
            {"options": {"kafka.transactional.id": "x"}},
            "kafka.transactional.id has no effect",
            id="transactional-id",
        ),
        pytest.param(
            {"options": {"includeHeaders": "true"}}, "includeHeaders has no effect", id="headers"
        ),
        pytest.param(
            {"options": {"checkpointLocation": "/tmp/c"}}, "said with --checkpoint", id="checkpoint"
        ),
        pytest.param({"options": {"topic": "x"}}, "said with topic=", id="topic"),
        pytest.param(
            {"options": {"newQeury": True}}, "pipeline a: .* did you mean newQuery", id="misspelt"
        ),
        pytest.param({"options": {"colour": "red"}}, "no option colour: there are", id="unknown"),
        pytest.param({"table": "movements"}, "table= is 'movements', not a function", id="table"),
        pytest.param(
            {"kind": "stock", "table": print},
            "pipeline a: kind='stock' cannot write a table, too: it has no ledger",
            id="stock-table",
        ),
        pytest.param(
            {"table": print, "trigger": {"continuous": "1 s"}},
            "pipeline a: the continuous trigger cannot be exactly once",
            id="table-continuous",
        ),
        pytest.param({"topic": "in"}, "source and sink are the topic in", id="own-output"),
        pytest.param({"topic": "__spark_sink_ledger"}, "is the sink's ledger", id="ledger"),
        pytest.param(
            {"kind": "stock", "options": {"transactionTimeoutMs": 5}},
            "transactionTimeoutMs has no effect on kind='stock'",
            id="stock-ours",
        ),
        pytest.param(
            {"kind": "stock", "options": {"kafka.transactional.id": "x"}},
            "cannot write in transactions",
            id="stock-transactional",
        ),
        pytest.param(
            {"kind": "stock", "options": {"includeHeader": True}},
            "did you mean includeHeaders",
            id="stock-misspelt",
        ),
        pytest.param(
            {"kind": "stock", "options": {"kafka.linger": 5}},
            "no option kafka.linger: did you mean kafka.linger.ms",
            id="stock-producer",
        ),
    ],
)
def test_a_sink_that_is_wrong(sink, says):
    with pytest.raises(WrongUse, match=says):
        check_pipelines([pipeline(**sink)])


@pytest.mark.parametrize(
    "interval", ["0 seconds", "5 seconds", "interval 1 hour 30 minutes", "1.5 Seconds", "2 weeks "]
)
def test_intervals_that_spark_takes(interval):
    check_pipelines([pipeline(trigger={"processingTime": interval})])


class Frame:
    """The result of a table for the topic."""

    sparkSession = None  # noqa: N815 - Spark's name

    def __init__(self, *dtypes):
        self.dtypes = dtypes


def test_rows_of_a_table_for_the_topic_have_no_other_columns():
    frame = Frame(*RIGHT)
    sink = Sink(sink_id="a", topic="out", table=lambda _rows, _batch: frame)
    assert with_checked_table(sink).table("rows", "batch") is frame
    frame.dtypes = (*RIGHT, ("account", "int"))
    with pytest.raises(WrongUse, match="the sink has no column 'account'"):
        with_checked_table(sink).table("rows", "batch")
    assert with_checked_table(Sink(sink_id="a")) == Sink(sink_id="a")


def test_the_stock_sink_may_do_what_it_can():
    check_pipelines(
        [
            pipeline(
                kind="stock",
                trigger={"realTime": "5 seconds"},
                options={"asyncProgressTrackingEnabled": "true", "kafka.acks": "1"},
            )
        ]
    )


def test_invalid_options_of_sinks_are_reported():
    with pytest.raises(WrongOption, match=r"kafka\.security\.protocol: TLS is none of"):
        check_pipelines([pipeline(options={"kafka.security.protocol": "TLS"})])
    with pytest.raises(WrongOption, match="transactionTimeoutMs"):
        check_pipelines([pipeline(options={"transactionTimeoutMs": "soon"})])
    with pytest.raises(WrongOption, match="host:port"):
        check_pipelines([pipeline(servers="nowhere")])


def test_two_pipelines_with_one_sink_id():
    with pytest.raises(WrongUse, match="2 pipelines have the sink id 'a'"):
        check_pipelines([pipeline(), pipeline(topic="other"), pipeline(sink_id="b")])


def test_asynchronous_progress_as_a_setting_of_spark():
    setting = {"spark.sql.streaming.asyncProgressTrackingEnabled": "TRUE"}
    with pytest.raises(WrongUse, match="asynchronous progress tracking"):
        check_configuration([pipeline()], setting)
    check_configuration([pipeline(kind="stock")], setting)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        pytest.param([("key", "string")], "the column 'value' is missing", id="no-value"),
        pytest.param([*RIGHT, ("cents", "bigint")], "no column 'cents'", id="unknown"),
        pytest.param([("value", "bigint")], "'value' has the type bigint", id="value-type"),
        pytest.param([*RIGHT, ("partition", "bigint")], "must be int: cast it", id="partition"),
        pytest.param(
            [*RIGHT, ("headers", "map<string,string>")], "must be array<struct", id="headers"
        ),
        pytest.param([*RIGHT, ("timestamp", "bigint")], "must be timestamp", id="timestamp"),
        pytest.param([*RIGHT, ("topic", "string")], "has a topic=, which would win", id="topic"),
        pytest.param([*RIGHT, ("value", "string")], "2 columns are called 'value'", id="twice"),
    ],
)
def test_columns_that_are_wrong(columns, says):
    with pytest.raises(WrongUse, match=says):
        check_columns(columns, pipeline().sink)


def test_columns_that_are_right():
    everything = [
        *RIGHT,
        ("partition", "int"),
        ("headers", "array<struct<key:string,value:binary>>"),
        ("timestamp", "timestamp"),
    ]
    check_columns(everything, pipeline().sink)
    check_columns([*RIGHT, ("topic", "string")], pipeline(topic=None).sink)


def test_where_rows_go_must_be_said():
    with pytest.raises(WrongUse, match="topic of the rows is unknown"):
        check_columns(RIGHT, pipeline(topic=None).sink)


def test_the_stock_sink_has_no_timestamp():
    with pytest.raises(WrongUse, match="no column 'timestamp'"):
        check_columns([*RIGHT, ("timestamp", "timestamp")], pipeline(kind="stock").sink)


# ----------------------------------------------------------------------------------------- sources


def test_a_source_reads_committed_records_from_their_beginning(monkeypatch):
    monkeypatch.delenv("BARNABAS_SERVERS", raising=False)
    assert Source(topic=["a", "b"]).spark_options(starting="earliest") == {
        "kafka.bootstrap.servers": "localhost:9092",
        "kafka.isolation.level": "read_committed",
        "kafka.max.poll.records": "10000",
        "startingOffsets": "earliest",
        "subscribe": "a,b",
    }


def test_options_of_a_user_override_defaults(monkeypatch):
    monkeypatch.setenv("BARNABAS_SERVERS", "from-the-command:1")
    options = {"startingTimestamp": 5, "KAFKA.isolation.level": "read_uncommitted"}
    options |= {"failOnDataLoss": False, "kafka.MAX.poll.records": 1}
    assert Source(pattern="a.*", options=options).spark_options(starting="earliest") == {
        "kafka.bootstrap.servers": "from-the-command:1",
        "kafka.isolation.level": "read_uncommitted",
        "kafka.max.poll.records": "1",
        "startingTimestamp": "5",
        "failOnDataLoss": "false",
        "subscribePattern": "a.*",
    }
    assert Source(topic="a", servers="b:1").spark_options()["kafka.bootstrap.servers"] == "b:1"


@pytest.mark.parametrize(
    ("trigger", "once", "options", "bound"),
    [
        ({}, False, {}, "1000000"),
        ({"availableNow": True}, False, {}, "1000000"),
        ({"processingTime": "1 hour"}, True, {}, "1000000"),
        ({"processingTime": "1 hour"}, False, {}, None),
        ({"realTime": "5 seconds"}, False, {}, None),
        ({}, False, {"minOffsetsPerTrigger": 2_000_000}, None),
        ({}, True, {"maxOffsetsPerTrigger": 7}, "7"),
        ({}, False, {"MAXOFFSETSPERTRIGGER": 7}, None),
    ],
)
def test_batches_that_follow_at_once_are_bounded(trigger, once, options, bound):
    """A trigger with pauses has no bound: more records than the bound may arrive in a pause."""
    spark = MagicMock()
    each = pipeline(Source(topic="in", options=options), trigger=trigger)
    each.frame(spark, once=once)
    (given,) = [call.kwargs for call in spark.readStream.format().options.mock_calls if call.kwargs]
    assert given.get("maxOffsetsPerTrigger") == bound


@pytest.mark.parametrize(
    ("source", "says"),
    [
        pytest.param(Source(), "a topic or a pattern", id="neither"),
        pytest.param(Source(topic="a", pattern="b"), "a topic or a pattern", id="both"),
        pytest.param(Source(topic=[]), "at least one topic", id="none"),
        pytest.param(Source(topic="a", options={"subscribe": "b"}), "topic= or", id="subscribe"),
        pytest.param(
            Source(topic="a", options={"kafka.bootstrap.servers": "b:1"}), "servers=", id="servers"
        ),
    ],
)
def test_a_source_that_is_wrong(source, says):
    with pytest.raises(WrongOption, match=says):
        check_pipelines([pipeline(source)])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"startingOffset": "latest"}, "did you mean startingOffsets"),
        ({"fail.on.data.loss": False}, "did you mean failOnDataLoss"),
        ({"kafka.max.pol.records": 5}, "no option kafka.max.pol.records: did you mean kafka.max.p"),
        ({"kafka.isolation.level": "read_uncommitted"}, "reads what may be aborted later"),
        ({"maxOffsetsPerTrigger": "many"}, "pipeline a: .* must be a whole number, but is 'many'"),
        ({"MINPARTITIONS": -1}, "option MINPARTITIONS must be a whole number, but is '-1'"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss must be True or False, but is 'no'"),
        ({"startingOffsets": "soon"}, "startingOffsets must be 'earliest', 'latest', or JSON"),
    ],
)
def test_options_of_a_source_that_are_wrong(options, says):
    with pytest.raises(WrongUse, match=says):
        check_pipelines([pipeline(Source(topic="in", options=options))])


def test_values_of_options_that_are_right():
    options = {
        "maxOffsetsPerTrigger": 5,
        "failOnDataLoss": False,
        "startingOffsets": ' {"in": {"0": 5,\n"1": -2}} ',
        "maxTriggerDelay": "15m",
        "kafka.Max.Poll.Records": 5,
        "kafka.my.interceptor.url": "http://metrics",
    }
    check_pipelines([pipeline(Source(topic="in", options=options))])


def test_at_least_once_pipeline_may_read_uncommitted():
    source = Source(topic="in", options={"kafka.isolation.level": "read_uncommitted"})
    check_pipelines([pipeline(source, kind="stock")])


def test_the_same_name_on_another_cluster_is_another_topic():
    check_pipelines([pipeline(Source(topic="out", servers="there:9092"), servers="here:9092")])
