"""Drivers without Spark: their checkpoint is real, and so is the broker; a batch is one record."""

from __future__ import annotations

import json
import shutil
import uuid
from collections import Counter
from pathlib import Path

from barnabas.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.records import Record, encode_batch
from barnabas.spark_connector.checkpoint import checkpoint
from barnabas.spark_connector.cluster.cluster import Cluster, connected
from barnabas.spark_connector.rows.encoded import EncodedBatch
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.spark_connector.sinks.kept_decider import commit_with_decider
from barnabas.spark_connector.sinks.single import SingleTransactionSink
from barnabas.spark_connector.sinks.starting import find_refusal, take_the_sink
from barnabas.spark_connector.sinks.two_phase import Decider, Participant
from barnabas.storage.runtime.chance import random_bytes
from barnabas.storage.runtime.clock import now_ns
from barnabas.testing import Broker

SINGLE, TWO_PHASE, DATA_SOURCE = "single", "two-phase", "data-source"
KINDS = (SINGLE, TWO_PHASE, DATA_SOURCE)
PER_BATCH = 10
"""Offsets of the source that a batch reads."""


class ConcurrentUpdate(Exception):
    """The error that ends a query of Spark after another driver has written to its checkpoint."""

    def __str__(self) -> str:
        return "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log."


class SparkCheckpoint:
    """A checkpoint as Spark writes it: each file is written once."""

    def __init__(self, directory: Path, topics: tuple[str, ...] = ("in",)) -> None:
        self.directory = directory
        self.topics = topics
        if not directory.exists():
            for folder in ("offsets", "commits"):
                (directory / folder).mkdir(parents=True)
            query_id = str(uuid.uuid5(uuid.NAMESPACE_URL, directory.name))
            (directory / "metadata").write_text(json.dumps({"id": query_id}))

    @property
    def query_id(self) -> str:
        return str(json.loads((self.directory / "metadata").read_text())["id"])

    def copy_to(self, directory: Path) -> SparkCheckpoint:
        shutil.copytree(self.directory, directory)
        return SparkCheckpoint(directory, self.topics)

    def first_batch(self) -> int:
        found = checkpoint.next_batch(str(self.directory))
        assert found is not None
        return found

    def plan(self, batch_id: int) -> None:
        """Record the end of a batch, unless it was planned when the query started."""
        ends = {topic: {"0": (batch_id + 1) * PER_BATCH} for topic in self.topics}
        self._add(f"offsets/{batch_id}", f"v1\n{{}}\n{json.dumps(ends)}")

    def is_planned(self, batch_id: int) -> bool:
        return (self.directory / "offsets" / str(batch_id)).exists()

    def finish(self, batch_id: int) -> None:
        self._add(f"commits/{batch_id}", "v1\n{}")

    def _add(self, name: str, text: str) -> None:
        try:
            with (self.directory / name).open("x") as file:
                file.write(text)
        except FileExistsError:
            raise ConcurrentUpdate from None


def options(broker: Broker, sink_id: str, checkpoint: SparkCheckpoint, **more: str) -> SinkOptions:
    given = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "sinkId": sink_id,
        "topic": "out",
        "checkpointLocation": str(checkpoint.directory),
        "ledgerTopic": "ledger",
        "kafka.delivery.timeout.ms": "10000",
    }
    chosen = given | more
    # Without a topic the rows say where they go.
    return SinkOptions.parse({name: value for name, value in chosen.items() if value})


def rows(topic: str, value: str) -> EncodedBatch:
    now_ms = now_ns() // 1_000_000
    records = [Record(0, now_ms, None, value.encode())]
    return EncodedBatch(topic, 0, 1, bytearray(encode_batch(records)))


class Driver:
    """A query in one process, from its start until something fails."""

    def __init__(self, kind: str, chosen: SinkOptions, files: SparkCheckpoint) -> None:
        self.kind = kind
        self.options = chosen
        self.files = files
        self.batch_id = files.first_batch()
        self.is_first = True
        self._cluster = connected(chosen)
        self._sink: SingleTransactionSink | Decider | None = None

    def take(self) -> None:
        """Take the sink, as `python -m barnabas.spark run` does before the query."""
        take_the_sink(self.options, self.files.topics, is_two_phase=self.kind != SINGLE)

    def run(self, last: int) -> None:
        """Run batches up to this one, as Spark does."""
        while self.batch_id <= last:
            self.run_batch()

    def run_batch(self) -> None:
        batch_id = self.batch_id
        # Spark reads its plans when the query begins, and adds to them after that.
        if not self.is_first or not self.files.is_planned(batch_id):
            self.files.plan(batch_id)
        self.write(batch_id)
        self.files.finish(batch_id)
        self.batch_id += 1
        self.is_first = False

    def write(self, batch_id: int) -> None:
        """Write a batch as its sink does."""
        end = checkpoint.batch_end(str(self.files.directory), batch_id)
        query_id = self.files.query_id
        if self.kind == DATA_SOURCE:
            refusal = find_refusal(self.options)
            if refusal is not None:
                raise refusal
            prepared = self._run_task(batch_id)
            commit_with_decider(
                self.options,
                query_id,
                batch_id,
                lambda decider: decider.commit(batch_id, prepared, end.fingerprint, end.offsets),
            )
            return
        sink = self._made(batch_id)
        if isinstance(sink, SingleTransactionSink):
            sink.write_batch(batch_id, self._rows(batch_id), end.fingerprint, end.offsets)
        elif not sink.is_decided(batch_id, end.fingerprint, end.topics):
            sink.commit(batch_id, self._run_task(batch_id), end.fingerprint, end.offsets)

    def begin(self) -> bool:
        """Record the start of the next batch; return whether it was started before."""
        if not self.files.is_planned(self.batch_id):
            self.files.plan(self.batch_id)
        self.is_first = True  # What is planned is not planned again.
        end = checkpoint.batch_end(str(self.files.directory), self.batch_id)
        sink = self._made(self.batch_id)
        assert not sink.is_decided(self.batch_id, end.fingerprint, end.topics)
        return sink.begin_batch(self.batch_id, end.fingerprint)

    def _made(self, batch_id: int) -> SingleTransactionSink | Decider:
        """The sink, which recovers before its first batch."""
        if self._sink is not None:
            return self._sink
        query_id = self.files.query_id
        if self.kind == SINGLE:
            self._sink = SingleTransactionSink(self.options, query_id, self._cluster)
            return self._sink
        self._sink = decider = Decider(
            self.options, query_id, self._cluster, is_sole_recipient=True
        )
        decider.recover(batch_id)
        return decider

    def _rows(self, batch_id: int) -> list[EncodedBatch]:
        return [rows(self.options.topic or f"out-{batch_id}", f"{batch_id}")]

    def _run_task(self, batch_id: int) -> list:
        task = Participant(
            self.options,
            batch_id=batch_id,
            query_id=self.files.query_id,
            partition=0,
            task_attempt_id=0,
            nonce=random_bytes(4).hex(),
            cluster=self._cluster,
        )
        task.write(self._rows(batch_id))
        return [task.prepared()]

    def close(self) -> None:
        self._cluster.close()


def delete(broker: Broker, topic: str) -> None:
    """Delete a topic."""
    with Cluster(broker.bootstrap_servers, client_id="test", timeout_ms=10_000) as cluster:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(topic)], topic_names=[topic], timeout_ms=10_000
        )
        answer = cluster.ask(f"Deleting {topic}", cluster.controller, DELETE_TOPICS, request)
        assert not answer.responses[0].error_code


def recreate(broker: Broker, topic: str) -> None:
    """Delete a topic and make one of the same name."""
    delete(broker, topic)
    broker.create_topic(topic, 2)


def id_of(broker: Broker, topic: str) -> str:
    with Cluster(broker.bootstrap_servers, client_id="test", timeout_ms=10_000) as cluster:
        return cluster.home([topic]).topics[topic]


def cluster_id_of(broker: Broker) -> str:
    with Cluster(broker.bootstrap_servers, client_id="test", timeout_ms=10_000) as cluster:
        return cluster.home([]).cluster_id


def committed(broker: Broker, topic: str = "out") -> Counter[str]:
    """Return the values that `read_committed` consumers find."""
    return Counter(
        (each.value or b"").decode() for each in broker.records(topic, "read_committed").result
    )


def written(broker: Broker, topic: str = "out") -> int:
    """Return the number of records for `read_uncommitted` consumers."""
    return len(broker.records(topic).result)
