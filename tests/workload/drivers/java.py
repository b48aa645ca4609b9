"""Apache Kafka's own Java producer, driven through py4j: the one that speaks KIP-890 (TV2).

Its JVM is a child of the client, of the same process group, and ends with it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from kafka.structs import ConsumerGroupMetadata
from py4j.java_gateway import GatewayParameters, JavaGateway, find_jar_path, launch_gateway
from py4j.protocol import Py4JError, Py4JJavaError

from tests.counterparts.jars import kafka_class_path
from tests.counterparts.java import java
from tests.counterparts.logins import Login, java_settings
from tests.history.model import NOT_KNOWN, Partition, Write
from tests.workload.drivers import Failed, Over, patience_s

JVM_OPTIONS = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
STRINGS = "org.apache.kafka.common.serialization.StringSerializer"
REQUEST_TIMEOUT_MS = 4000
FATAL = ("ProducerFencedException", "InvalidProducerEpochException", "IllegalStateException")
Result = TypeVar("Result")
_gateways: list[JavaGateway] = []


def gateway() -> JavaGateway:
    """Return the one JVM of this process."""
    if not _gateways:
        port = launch_gateway(
            jarpath=find_jar_path(),
            classpath=kafka_class_path(),
            java_path=str(java()),
            javaopts=JVM_OPTIONS,
            die_on_exit=True,
            redirect_stdout=subprocess.DEVNULL,
            redirect_stderr=subprocess.DEVNULL,
        )
        parameters = GatewayParameters(port=port, auto_convert=True)
        _gateways.append(JavaGateway(gateway_parameters=parameters))
    return _gateways[0]


class Session:
    """Apache Kafka's Java producer."""

    def __init__(self, servers: str, transactional_id: str, timeout_ms: int, login: Login) -> None:
        settings = {
            "bootstrap.servers": servers,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": str(timeout_ms),
            "key.serializer": STRINGS,
            "value.serializer": STRINGS,
            "linger.ms": "0",
            "request.timeout.ms": str(REQUEST_TIMEOUT_MS),
            "delivery.timeout.ms": str(max(2 * REQUEST_TIMEOUT_MS, timeout_ms)),
            "max.block.ms": str(patience_s(timeout_ms) * 1000),
            "reconnect.backoff.ms": "20",
            "reconnect.backoff.max.ms": "200",
            **java_settings(login),
        }
        self._jvm = gateway().jvm
        producer = self._jvm.org.apache.kafka.clients.producer.KafkaProducer
        self._producer = self._try(lambda: producer(settings), Over)
        try:
            self._try(self._producer.initTransactions, Over)
        except Over:
            self.close()
            raise

    def begin(self) -> None:
        self._try(self._producer.beginTransaction, Over)

    def send(self, writes: Sequence[Write]) -> list[Write]:
        record = self._jvm.org.apache.kafka.clients.producer.ProducerRecord

        def send_all() -> list[Write]:
            sent = [
                self._producer.send(record(write.topic, write.partition, None, write.value))
                for write in writes
            ]
            placed = [future.get() for future in sent]
            # A duplicate is acknowledged without an offset.
            offsets = [p.offset() if p.hasOffset() else NOT_KNOWN for p in placed]
            return [w._replace(offset=o) for w, o in zip(writes, offsets, strict=True)]

        return self._try(send_all, Failed)

    def send_offsets(self, offsets: Mapping[Partition, int], group: ConsumerGroupMetadata) -> None:
        jvm = self._jvm
        consumer = jvm.org.apache.kafka.clients.consumer
        places = jvm.java.util.HashMap()
        for place, offset in offsets.items():
            partition = jvm.org.apache.kafka.common.TopicPartition(*place)
            places.put(partition, consumer.OffsetAndMetadata(offset))
        metadata = consumer.ConsumerGroupMetadata(
            group.group_id, group.generation_id, group.member_id, jvm.java.util.Optional.empty()
        )
        self._try(lambda: self._producer.sendOffsetsToTransaction(places, metadata), Failed)

    def commit(self) -> None:
        self._try(self._producer.commitTransaction, Failed)

    def abort(self) -> None:
        self._try(self._producer.abortTransaction, Over)

    def close(self) -> None:
        self._producer.close(self._jvm.java.time.Duration.ZERO)

    @staticmethod
    def _try(operation: Callable[[], Result], failure: type[Exception]) -> Result:
        try:
            return operation()
        except Py4JJavaError as error:
            words = str(error.java_exception)
            raise (Over if any(name in words for name in FATAL) else failure)(words) from error
        except Py4JError as error:
            raise Over(repr(error)) from error
