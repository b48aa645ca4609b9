"""Apache Kafka's own tools for transactions, by main class, and its client, which speaks TV2.

With `transaction.version` 2 (KIP-890) the broker adds partitions by itself, and the epoch of a
producer grows with every transaction.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.counterparts import kafka_tools
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.kafka_tools import run_tool
from tests.interop.administration import create
from tests.interop.clients import Confluent as PlainProducer
from tests.interop.clients import Sent
from tests.interop.dump import complaints, segment_files
from tests.interop.message_copier import TRANSACTION_SIZE, Copier
from tests.interop.transactional import (
    COMMITTED,
    UNCOMMITTED,
    Confluent,
    Rejected,
    committed,
    committed_offset,
    read_with_confluent,
)
from tests.products import for_the_night
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]
COPIED = 1000


def table(output: str) -> list[dict[str, str]]:
    """Read the table that a tool printed, by the names of its columns."""
    rows = [[cell.strip() for cell in line.split("\t")] for line in output.splitlines() if line]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def transactions(broker: BrokerProcess, *arguments: str) -> str:
    """Run kafka-transactions; it has to succeed."""
    result = run_tool(
        kafka_tools.TRANSACTIONS, "--bootstrap-server", broker.bootstrap_servers, *arguments
    )
    assert result.exit_code == 0, result.output
    return result.output


def dumped(broker: BrokerProcess, directory: str, decoder: str) -> str:
    """Return the output of DumpLogSegments for an internal topic's records."""
    logs = broker.data_directory.glob(f"{directory}-*/*.log")
    files = ",".join(str(path) for path in logs if path.stat().st_size)
    result = run_tool(kafka_tools.DUMP_LOG_SEGMENTS, decoder, "--files", files)
    assert result.exit_code == 0, result.output
    return result.output


def test_operators_see_and_end_a_transaction(transactional_broker, topic):
    broker = transactional_broker
    servers = broker.bootstrap_servers
    create(servers, topic, partitions=2)
    held = Confluent(servers, topic)
    held.begin()
    held.send(topic, 0, b"held")
    held.send(topic, 1, b"held")
    place = ("--topic", topic, "--partition", "0")
    with ThreadPoolExecutor(2) as tools:
        listed, described, producers, hanging = tools.map(
            lambda arguments: table(transactions(broker, *arguments)),
            [
                ("list", "--transactional-id-pattern", f"{topic}.*"),
                ("describe", "--transactional-id", topic),
                ("describe-producers", *place),
                ("find-hanging", *place, "--max-transaction-timeout", "0"),
            ],
        )
    assert [row["TransactionState"] for row in listed] == ["Ongoing"]
    (transaction,) = described
    assert transaction["TransactionState"] == "Ongoing"
    assert transaction["TransactionTimeoutMs"] == "600000"
    assert set(transaction["TopicPartitions"].split(",")) == {f"{topic}-0", f"{topic}-1"}
    (producer,) = producers
    assert producer["ProducerId"] == transaction["ProducerId"] == listed[0]["ProducerId"]
    assert producer["ProducerEpoch"] == transaction["ProducerEpoch"]
    assert producer["CurrentTransactionStartOffset"] == "0"
    # It is not lost, its coordinator knows it.
    assert hanging == []
    # By partition, behind the coordinator's back: the other partition stays open.
    transactions(broker, "abort", *place, "--start-offset", "0")
    behind = Confluent(servers, f"behind-{topic}")
    behind.begin()
    behind.send(topic, 0, b"behind")
    behind.send(topic, 1, b"behind")
    behind.commit()
    assert committed(servers, topic, 2, {0: [b"behind"]}) == {0: [b"behind"]}
    # By transactional id: everywhere.
    transactions(broker, "forceTerminateTransaction", "--transactionalId", topic)
    wanted = {0: [b"behind"], 1: [b"behind"]}
    assert committed(servers, topic, 2, wanted) == wanted
    with pytest.raises(Rejected, match="_FENCED"):
        held.commit()
    everything = {0: [b"held", b"behind"], 1: [b"held", b"behind"]}
    assert read_with_confluent(servers, topic, 2, UNCOMMITTED) == everything


@for_the_night(
    beside="tests/interop/test_tools_at_a_cluster.py"
    "::test_every_record_is_copied_once_while_brokers_die_in_turn"
)
def test_the_message_copier_copies_once_through_kills(own_broker, topic, tmp_path, say):
    """The broker and the copier are killed with -9, transactions are aborted at random.

    Then Kafka's own tool reads the broker's files.
    """
    servers = own_broker.bootstrap_servers
    create(servers, f"{topic}-in", partitions=1)
    create(servers, f"{topic}-out", partitions=2)
    values = [b"%d" % number for number in range(COPIED)]

    def fill(values: list[bytes]) -> None:
        PlainProducer().produce(servers, f"{topic}-in", [Sent(b"k", v) for v in values], "none", 0)

    fill(values[: COPIED // 2])
    copier = Copier(servers, topic, tmp_path)
    try:
        copier.wait_for_more()
        own_broker.kill()
        own_broker.restart()
        copier.wait_for_more()
        was_at_work = copier.kill()
        # It copies the records that exist when it starts, and may have finished with all of them.
        fill(values[COPIED // 2 :])
        copier.start()
        copier.finish()
    finally:
        copier.kill()
    wait_until(
        lambda: len(committed_values(servers, f"{topic}-out", partitions=2)) >= COPIED,
        "the last marker",
    )
    assert committed_values(servers, f"{topic}-out", partitions=2) == values
    assert committed_offset(servers, f"group-of-{topic}", f"{topic}-in", 0) == COPIED
    say(f"{COPIED} records copied once in {copier.transactions} transactions through the kills")
    say(
        "the copier was killed at work"
        if was_at_work
        else "the copier had ended when it was killed"
    )
    own_broker.terminate()
    with ThreadPoolExecutor(2) as tools:
        found = tools.submit(complaints, segment_files(own_broker.data_directory))
        decided = dumped(own_broker, "__transaction_state", "--transaction-log-decoder")
        consumed = dumped(own_broker, "__consumer_offsets", "--offsets-decoder")
    check_transaction_log(decided)
    check_offsets(consumed, topic)
    assert found.result() == []


def committed_values(servers: str, topic: str, *, partitions: int) -> list[bytes]:
    """Return the committed values of all partitions; the order holds within each."""
    by_partition = read_with_confluent(servers, topic, partitions, COMMITTED)
    return [value for values in by_partition.values() for value in values]


def check_transaction_log(output: str) -> None:
    """The client spoke the second generation, and every state it went through was written down."""
    statuses = set(re.findall(r'"transactionStatus":(\d)', output))
    # Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort.
    assert statuses == {"0", "1", "2", "3", "4", "5"}
    assert '"clientTransactionVersion":2' in output
    epochs = {int(epoch) for epoch in re.findall(r'"producerEpoch":(\d+)', output)}
    assert epochs >= set(range(COPIED // TRANSACTION_SIZE)), "one for each transaction"


def check_offsets(output: str, topic: str) -> None:
    """Offsets of transactions, each kind of marker, and the group's name in clear."""
    assert f'"group":"group-of-{topic}","topic":"{topic}-in","partition":0' in output
    assert "endTxnMarker: COMMIT" in output
    assert "endTxnMarker: ABORT" in output


def test_transactional_and_plain_producers_write_side_by_side(transactional_broker, topic):
    """ProducerPerformance with transactions, VerifiableProducer without, among an open one."""
    servers = transactional_broker.bootstrap_servers
    create(servers, f"{topic}-fast", partitions=3)
    create(servers, f"{topic}-plain", partitions=1)
    held = Confluent(servers, topic)
    held.begin()
    held.send(f"{topic}-plain", 0, b"aborted")
    with ThreadPoolExecutor(2) as tools:
        performance = tools.submit(
            run_tool,
            kafka_tools.PRODUCER_PERFORMANCE,
            *("--bootstrap-server", servers, "--topic", f"{topic}-fast"),
            *("--num-records", "20000", "--record-size", "100", "--throughput", "-1"),
            *("--transactional-id", f"{topic}-fast", "--transaction-duration-ms", "50"),
        ).result
        verifiable = tools.submit(
            run_tool,
            kafka_tools.VERIFIABLE_PRODUCER,
            *("--bootstrap-server", servers, "--topic", f"{topic}-plain", "--max-messages", "50"),
        ).result
    assert "20000 records sent" in performance().output, performance().output
    assert '"sent":50,"acked":50' in verifiable().output, verifiable().output
    wait_until(
        lambda: len(committed_values(servers, f"{topic}-fast", partitions=3)) == 20_000,
        "all records are committed",
    )
    # A record outside transactions waits for the transaction before it, too.
    assert read_with_confluent(servers, f"{topic}-plain", 1, COMMITTED) == {}
    held.abort()
    wanted = {0: [b"%d" % i for i in range(50)]}
    assert committed(servers, f"{topic}-plain", 1, wanted) == wanted
