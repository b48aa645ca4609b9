import pickle

import pytest

from barnabas.spark_connector.errors import WrongOption
from barnabas.spark_connector.settings.acceptance import LostBatch
from barnabas.spark_connector.settings.options import SinkOptions, addresses

QUERY = "2b9a7f2c-7b6c-4d0e-9d57-0d3c6a5e1f00"
LEAST = {"kafka.bootstrap.servers": "localhost:9092", "sinkId": "orders"}


def test_two_options_are_enough():
    options = SinkOptions.parse(LEAST)
    assert options.bootstrap_servers == "localhost:9092"
    assert options.sink_id == "orders"
    assert options.transactional_id == "spark.orders"
    assert options.source_group_id == "spark.orders"
    assert options.topic is None
    assert options.transaction_timeout_ms == 900_000
    assert options.batch_max_bytes == 1024 * 1024 - 64 * 1024
    assert options.ledger_topic == "__spark_sink_ledger"
    assert str(options.new_query) == "false"
    assert (options.source_servers, options.accepted_ids) == ("", frozenset())


def test_names_are_recognised_in_the_case_that_spark_passes_on():
    given = {name.lower(): value for name, value in LEAST.items()}
    options = SinkOptions.parse(given | {"transactiontimeoutms": "5000", "newquery": "TRUE"})
    assert (options.transaction_timeout_ms, str(options.new_query)) == (5000, "true")
    assert SinkOptions.parse(given | {"acceptlostbatch": "7"}).accepts_lost("any", 7)
    assert SinkOptions.parse(given | {"acceptids": " a-B, c_D "}).accepted_ids == {"a-B", "c_D"}
    assert (options.accepted_plan, options.lost_batch) == (None, None)
    accepting = SinkOptions.parse(given | {"acceptnewplan": "7", "acceptLostBatch": "0"})
    assert (accepting.accepted_plan, accepting.lost_batch) == (7, LostBatch(0))


def test_options_travel_to_tasks():
    options = SinkOptions.parse(LEAST | {"sourceGroupId": "", "checkpointLocation": "/tmp/c"})
    assert pickle.loads(pickle.dumps(options)) == options
    assert options.source_group_id == ""


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"sinkId": ""}, "sinkId is missing"),
        ({"sinkId": "a.b"}, "sinkId is 'a.b'"),
        ({"sinkId": "a" * 101}, "at most 100"),
        ({"kafka.bootstrap.servers": ""}, "bootstrap.servers is missing"),
        ({"kafka.bootstrap.servers": "localhost"}, "write it as host:port"),
        ({"kafka.bootstrap.servers": "localhost:0"}, "write it as host:port"),
        ({"sourceServers": "localhost"}, "sourceServers has the address 'localhost'"),
        ({"topic": "no/topic"}, "no topic can be called"),
        ({"ledgerTopic": ".."}, "no topic can be called"),
        ({"transactionTimeoutMs": "ten"}, "use a whole number"),
        ({"transactionTimeoutMs": "999"}, "from 1000"),
        ({"batchMaxBytes": "1"}, "from 1024"),
        ({"newQuery": "perhaps"}, "use true or false"),
        ({"newQuery": "7"}, "use true or false"),
        ({"newQuery": f"{QUERY},ture"}, "the value that the refusal of the query names"),
        ({"newQuery": f"{QUERY}:"}, "use true or false"),
        ({"newQuery": ""}, "use true or false"),
        ({"acceptLostBatch": "-1"}, "from 0"),
        ({"acceptLostBatch": "orders:7"}, "use <query id>:<batch>"),
        ({"acceptLostBatch": f"{QUERY}:"}, "use <query id>:<batch>"),
        ({"kafka.compression.type": "rar"}, "use one of none, gzip"),
        ({"kafka.acks": "1"}, "not one of this sink's"),
        ({"kafka.compresion.type": "lz4"}, "did you mean kafka.compression.type?"),
        ({"batchMaxByte": "4096"}, "did you mean batchMaxBytes?"),
        ({"checkpointLocaton": "/c"}, "did you mean checkpointLocation?"),
    ],
    ids=lambda each: next(iter(each.items()))[0] + "-wrong" if isinstance(each, dict) else None,
)
def test_a_wrong_option_is_refused_in_one_sentence(wrong, sentence):
    with pytest.raises(WrongOption, match=r"^The option ") as caught:
        SinkOptions.parse(LEAST | wrong)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_addresses():
    assert addresses("one:1, [::1]:9092") == [("one", 1), ("::1", 9092)]
