"""The payments of the demonstration: the same as those of examples/spark_data.py, by the million.

Generated and judged with numpy and Arrow, since the pipeline in between is what is to be shown.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import confluent_kafka
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.spark_connector.cluster.cluster import connected
from barnabas.spark_connector.cluster.producer import TransactionalProducer
from barnabas.spark_connector.rows.encode import BatchEncoder
from barnabas.spark_connector.settings.options import SinkOptions
from examples.spark_data import ACCOUNTS

CHUNK = 250_000
TRANSACTION_TIMEOUT_MS = 600_000
READ_TIMEOUT_S = 120
MOVEMENT = r'^\{"payment":(?P<payment>\d+),"account":(?P<account>\d+),"cents":(?P<cents>-?\d+)\}$'
"""The values that examples/spark_ledger.py writes."""
Numbers = npt.NDArray[np.int64]


def payments(first: int, end: int) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return number, payer, payee and cents of some payments."""
    number = np.arange(first, end, dtype=np.int64)
    payer = number * 7919 % ACCOUNTS
    payee = (payer + 1 + number % (ACCOUNTS - 1)) % ACCOUNTS
    return number, payer, payee, 1 + number * 31 % 99_999


def produce(servers: str, topic: str, count: int, partitions: int) -> None:
    """Write payments, in order over the partitions, in transactions of the connector's client."""
    options = SinkOptions.parse({"kafka.bootstrap.servers": servers, "sinkId": "input"})
    with connected(options) as cluster:
        producer = TransactionalProducer(cluster, "input", TRANSACTION_TIMEOUT_MS)
        producer.begin()
        for first in range(0, count, CHUNK):
            batch = _batch(first, min(first + CHUNK, count), partitions)
            encoder = BatchEncoder(
                batch.schema,
                topic=topic,
                partition_counts=lambda _topic: partitions,
                batch_max_bytes=options.batch_max_bytes,
            )
            producer.write(encoder.add(batch))
            producer.write(encoder.finish())
            producer.commit()


def _batch(first: int, end: int, partitions: int) -> pa.RecordBatch:
    columns = [pa.array(each).cast(pa.string()) for each in payments(first, end)]
    pieces: list[object] = []
    for name, column in zip(('{"id":', ',"from":', ',"to":', ',"cents":'), columns, strict=True):
        pieces += [name, column]
    value = pc.binary_join_element_wise(*pieces, "}", "")
    partition = pa.array(np.arange(first, end, dtype=np.int32) % partitions)
    return pa.RecordBatch.from_pydict({"key": columns[1], "value": value, "partition": partition})


@dataclass(frozen=True)
class Copies:
    """The copies of each movement of money in a topic, two for each payment, and the rest."""

    counts: npt.NDArray[np.uint16]
    strangers: int

    @property
    def records(self) -> int:
        return int(self.counts.sum()) + self.strangers

    @property
    def duplicates(self) -> int:
        return int(self.by_movement_beyond_one.sum())

    @property
    def losses(self) -> int:
        return int((self.counts == 0).sum())

    @property
    def by_movement_beyond_one(self) -> Numbers:
        return np.maximum(self.counts.astype(np.int64) - 1, 0)

    @property
    def is_exact(self) -> bool:
        return not (self.duplicates or self.losses or self.strangers)


def judge(servers: str, topic: str, count: int, partitions: int) -> Copies:
    """Read the committed records and count the copies of each movement."""
    counts = np.zeros(2 * count, np.uint16)
    _number, payer, payee, cents = payments(0, count)
    expected_account = np.stack([payer, payee], axis=1).reshape(-1)
    expected_cents = np.stack([-cents, cents], axis=1).reshape(-1)
    strangers = 0
    for values in _read_committed(servers, topic, partitions):
        found = pc.extract_regex(pa.array(values, pa.binary()).cast(pa.string()), MOVEMENT)
        found = found.drop_null()
        columns = [
            pc.struct_field(found, [name]).cast(pa.int64()).to_numpy()
            for name in ("payment", "account", "cents")
        ]
        payment, account, moved = columns
        known = payment < count
        place = (2 * payment + (moved > 0))[known]
        right = (expected_account[place] == account[known]) & (
            expected_cents[place] == moved[known]
        )
        np.add.at(counts, place[right], 1)
        strangers += len(values) - int(right.sum())
    return Copies(counts, strangers)


def _read_committed(servers: str, topic: str, partitions: int):
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "judge",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, each, 0) for each in range(partitions)])
    unfinished = set(range(partitions))
    deadline = time.monotonic() + READ_TIMEOUT_S
    try:
        while unfinished:
            assert time.monotonic() < deadline, f"{topic}: nothing more comes"
            values = []
            for message in consumer.consume(50_000, 1):
                error = message.error()
                if error is None:
                    values.append(message.value())
                elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    unfinished.discard(message.partition())
                else:
                    raise confluent_kafka.KafkaException(error)
            if values:
                deadline = time.monotonic() + READ_TIMEOUT_S
                yield values
    finally:
        consumer.close()
