"""`python -m tests.interop.transform_worker '{"library": ...}'`: consume, transform, produce.

Every record of the input becomes one of the output, and the offsets are committed in the same
transaction. A worker ends by SIGTERM, by kill -9, or with exit code 3 when its library reports that
only a new producer may continue; its supervisor starts it again.

The workers show how to use each library so that every input takes effect once:

* confluent-kafka and kafka-python send their member id and generation to the group coordinator
  (KIP-447). These must be the values from before the poll that returned the records. A later
  snapshot would vouch for records of an assignment that has ended.
* librdkafka 2.16.0 may hang in `send_offsets_to_transaction`, beyond its timeout, after the broker
  restarted: it never sends the offsets. So its worker sets itself an alarm, as a supervisor would.
* librdkafka looks only once for its group at a coordinator that has just moved, reports the error,
  and reads nothing until the next rebalance. So its worker assigns itself its partitions once more.
* kafka-python 3.0.12 does not forget refused offsets when it aborts. It does not report a
  transaction that timed out during its commit. So a worker checks the result of every record, and
  restarts after any error.
* kafka-python 3.0.12 may read on after its group's committed offset, in a valid generation,
  so that no broker can refuse its offsets. It keeps the position of a partition that it gets back,
  also when it missed a generation in which another member had it. It misses a generation when a
  join has ended between two polls. It also keeps a response to OffsetFetch that `poll` no longer
  awaited, for the next request for the same partitions. So a worker has a listener, drops the
  records that arrived while partitions moved, and seeks to each committed offset before it polls.
* aiokafka sends the group's name only. Its transactional ids belong to the input's partitions. A
  worker that gets a partition opens its producer first, which ends the transaction of the previous
  worker, and only after that seeks to the committed offset: the library itself reads it earlier.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

GIVE_UP = 3
"""Exit code of a worker that another one, or its next life, has to follow."""
OUTPUT_PARTITIONS = 2
MOST_RECORDS = 40
POLL_S = 0.1
SESSION_MS = 3000
HEARTBEAT_MS = 500
TRANSACTION_TIMEOUT_MS = 4000
TIMEOUT_S = 60.0
HANGS_S = 20
"""A transaction that takes so long will never end: its worker is ended, by SIGALRM."""
GAVE_UP = {GIVE_UP, -signal.SIGALRM}
"""Exit codes of a worker whose library lets it go no further, or hangs."""


class Settings(NamedTuple):
    """Given on the command line as JSON."""

    library: str
    name: str
    servers: str
    group: str
    input: str
    output: str
    session_ms: int = SESSION_MS


class Superseded(Exception):
    """Another worker has this worker's place; the last batch had no effect."""


Stopping = Callable[[], bool]


def transformed(value: bytes) -> bytes:
    """The transformation: nothing that could hide a record that comes twice."""
    return b"<" + value + b">"


def output_partition(value: bytes) -> int:
    """Spread the records of each input over the outputs."""
    return sum(value) % OUTPUT_PARTITIONS


# -------------------------------------------------------------------------------- confluent-kafka


def _knows_no_beginning(message: Any) -> bool:
    error = message.error()
    return error is not None and message.topic() is None and error.code() == error.NOT_COORDINATOR


def run_with_confluent(settings: Settings, stopping: Stopping) -> None:
    import confluent_kafka

    silent = logging.getLogger("librdkafka")
    silent.setLevel(logging.CRITICAL + 1)
    common = {
        "bootstrap.servers": settings.servers,
        "reconnect.backoff.max.ms": 200,
        "logger": silent,
    }
    producer = confluent_kafka.Producer(
        {
            **common,
            "transactional.id": settings.name,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "linger.ms": 0,
        }
    )
    consumer = confluent_kafka.Consumer(
        {
            **common,
            "group.id": settings.group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": settings.session_ms,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "fetch.wait.max.ms": 100,
        }
    )
    member: list[Any] = []

    def assigned(_consumer: Any, _places: Any) -> None:
        member[:] = [consumer.consumer_group_metadata()]

    def gone(_consumer: Any, _places: Any) -> None:
        member.clear()

    def rewind() -> None:
        for place in consumer.committed(consumer.assignment(), TIMEOUT_S):
            place.offset = max(place.offset, 0)
            consumer.seek(place)

    def transact(messages: list[Any]) -> None:
        producer.begin_transaction()
        for message in messages:
            value = transformed(message.value())
            producer.produce(settings.output, value, partition=output_partition(value))
        places = consumer.position(consumer.assignment())
        offsets = [place for place in places if place.offset >= 0]
        producer.send_offsets_to_transaction(offsets, member[0], TIMEOUT_S)
        producer.commit_transaction(TIMEOUT_S)

    try:
        producer.init_transactions(TIMEOUT_S)
        consumer.subscribe([settings.input], on_assign=assigned, on_revoke=gone, on_lost=gone)
        while not stopping():
            polled = consumer.consume(MOST_RECORDS, POLL_S)
            if any(map(_knows_no_beginning, polled)):
                consumer.assign(consumer.assignment())
                continue
            messages = [message for message in polled if message.error() is None]
            if not messages or not member:
                continue
            signal.alarm(HANGS_S)
            try:
                transact(messages)
            except confluent_kafka.KafkaException as failed:
                if not failed.args[0].txn_requires_abort():
                    raise
                producer.abort_transaction(TIMEOUT_S)
                rewind()
            signal.alarm(0)
    except confluent_kafka.KafkaException as failed:
        raise Superseded from failed
    finally:
        consumer.close()


# ----------------------------------------------------------------------------------- kafka-python


def run_with_kafka_python(settings: Settings, stopping: Stopping) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.errors import KafkaError, KafkaTimeoutError
    from kafka.structs import OffsetAndMetadata

    def connected(kind: Any, **options: Any) -> Any:
        while True:
            try:
                return kind(
                    bootstrap_servers=settings.servers, reconnect_backoff_max_ms=200, **options
                )
            except KafkaError:
                time.sleep(POLL_S)

    producer = connected(
        KafkaProducer,
        transactional_id=settings.name,
        transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        max_block_ms=int(TIMEOUT_S * 1000),
    )
    consumer = connected(
        KafkaConsumer,
        group_id=settings.group,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=settings.session_ms,
        heartbeat_interval_ms=HEARTBEAT_MS,
        fetch_max_wait_ms=100,
    )

    class Positions(ConsumerRebalanceListener):
        """Whether they are those of the group; it is called while `poll` waits."""

        are_known = False

        def on_partitions_revoked(self, _revoked: Any) -> None:
            self.are_known = False

        def on_partitions_assigned(self, _assigned: Any) -> None:
            self.are_known = False

    def rewind() -> None:
        for place in consumer.assignment():
            consumer.seek(place, consumer.committed(place) or 0)

    def transact(polled: dict[TopicPartition, list[Any]], member: Any) -> None:
        producer.begin_transaction()
        offsets = {}
        sent = []
        for place, records in polled.items():
            for record in records:
                value = transformed(record.value)
                sent.append(
                    producer.send(settings.output, value, partition=output_partition(value))
                )
            offsets[place] = OffsetAndMetadata(records[-1].offset + 1, "", -1)
        producer.send_offsets_to_transaction(offsets, member)
        # A commit of a transaction that ran out of time may return as if all were well; its
        # records know better.
        for future in sent:
            future.get(timeout=TIMEOUT_S)
        producer.commit_transaction()

    try:
        producer.init_transactions()
        positions = Positions()
        consumer.subscribe([settings.input], listener=positions)
        while not stopping():
            try:
                if not positions.are_known:
                    # Right behind the poll in which they moved: an answer that it gave up waiting
                    # for is then of this generation.
                    rewind()
                    positions.are_known = True
                # Before the poll: rebalances happen on the library's own thread, at any time.
                member = consumer.group_metadata()
                polled = consumer.poll(timeout_ms=int(POLL_S * 1000), max_records=MOST_RECORDS)
            except KafkaError:
                # While the broker is down kafka-python reports an error, and may keep records back
                # that it took.
                positions.are_known = False
                time.sleep(POLL_S)
                continue
            if member.generation_id < 0:
                positions.are_known = False
            if polled and positions.are_known:
                transact(polled, member)
    except KafkaError as failed:
        raise Superseded from failed
    finally:
        with contextlib.suppress(KafkaError):
            consumer.close()
        # What it has not sent yet belongs to a transaction that ends without it.
        with contextlib.suppress(KafkaTimeoutError):
            producer.close(timeout=0)


# --------------------------------------------------------------------------------------- aiokafka


def run_with_aiokafka(settings: Settings, stopping: Stopping) -> None:
    asyncio.run(_AiokafkaWorker(settings).run(stopping))


class _AiokafkaWorker:
    """A transactional producer for each partition of the input that is assigned."""

    def __init__(self, settings: Settings) -> None:
        import aiokafka

        self._library = aiokafka
        self._settings = settings
        self._consumer: Any = None
        self._producers: dict[Any, Any] = {}
        self._busy = asyncio.Lock()

    async def run(self, stopping: Stopping) -> None:
        from aiokafka.errors import KafkaError

        self._consumer = self._library.AIOKafkaConsumer(
            bootstrap_servers=self._settings.servers,
            group_id=self._settings.group,
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=self._settings.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            fetch_max_wait_ms=100,
        )
        self._consumer.subscribe([self._settings.input], listener=_listener(self))
        try:
            # Also a start may fail for good: of a coordinator that is still reading its log.
            await _connected(self._consumer)
            while not stopping():
                # Those of before: records of a later assignment are not for them.
                producers = self._producers
                polled = await self._consumer.getmany(
                    timeout_ms=int(POLL_S * 1000), max_records=MOST_RECORDS
                )
                for place, records in polled.items():
                    async with self._busy:
                        await asyncio.wait_for(
                            self._transact(producers.get(place), place, records), TIMEOUT_S
                        )
        except (KafkaError, AssertionError) as failed:
            # aiokafka raises an assertion when a producer was fenced.
            raise Superseded from failed
        finally:
            await self.revoked()
            await self._consumer.stop()

    async def _transact(self, producer: Any, place: Any, records: list[Any]) -> None:
        if producer is None or producer is not self._producers.get(place):
            # The partition belongs to another worker, or returned to this one: then its offset is
            # the start.
            if place in self._consumer.assignment():
                self._consumer.seek(place, await self._consumer.committed(place) or 0)
            return
        await producer.begin_transaction()
        sent = []
        for record in records:
            value = transformed(record.value)
            partition = output_partition(value)
            sent.append(await producer.send(self._settings.output, value, partition=partition))
        await asyncio.gather(*sent)
        offsets = {place: records[-1].offset + 1}
        await producer.send_offsets_to_transaction(offsets, self._settings.group)
        await producer.commit_transaction()

    async def assigned(self, places: set[Any]) -> None:
        """Open the producers; afterwards no other worker has an open transaction."""
        async with self._busy:
            producers = {place: await self._started(place) for place in places}
            for place in places:  # The library may have read it before the producers were open.
                self._consumer.seek(place, await self._consumer.committed(place) or 0)
            self._producers = producers

    async def revoked(self) -> None:
        """Close them, between two transactions."""
        async with self._busy:
            producers, self._producers = self._producers, {}
            for producer in producers.values():
                await asyncio.gather(producer.stop(), return_exceptions=True)

    async def _started(self, place: Any) -> Any:
        producer = self._library.AIOKafkaProducer(
            bootstrap_servers=self._settings.servers,
            transactional_id=f"{self._settings.group}-{place.partition}",
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        )
        # What a listener raises is only logged, and there would be partitions without a producer.
        await _connected(producer)
        return producer


async def _connected(client: Any) -> None:
    """Start a client, as soon as there is a broker."""
    from aiokafka.errors import KafkaConnectionError

    while True:
        try:
            await client.start()
        except KafkaConnectionError:
            await asyncio.sleep(POLL_S)
        else:
            return


def _listener(worker: _AiokafkaWorker) -> Any:
    """The library wants an instance of its own class."""
    from aiokafka import ConsumerRebalanceListener

    class Listener(ConsumerRebalanceListener):
        async def on_partitions_revoked(self, revoked: set[Any]) -> None:
            await worker.revoked()

        async def on_partitions_assigned(self, assigned: set[Any]) -> None:
            await worker.assigned(assigned)

    return Listener()


WORKERS = {
    "confluent-kafka": run_with_confluent,
    "kafka-python": run_with_kafka_python,
    "aiokafka": run_with_aiokafka,
}


def command_line(library: str, group: str) -> list[str]:
    """Return the command line of a worker, with the placeholders of ``barnabas prove``."""
    settings = Settings(library, f"{library}-{{instance}}", "{servers}", group, "input", "output")
    words = json.dumps(settings._asdict())
    return [sys.executable, "-m", "tests.interop.transform_worker", words]


@contextlib.contextmanager
def _until_sigterm() -> Iterator[Stopping]:
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stop.append(number))
    yield lambda: bool(stop)


def main() -> int:
    """Work until SIGTERM."""
    warnings.simplefilter("ignore")
    for library in ("kafka", "aiokafka"):
        logging.getLogger(library).setLevel(logging.CRITICAL)
    settings = Settings(**json.loads(sys.argv[1]))
    with _until_sigterm() as stopping:
        try:
            WORKERS[settings.library](settings, stopping)
        except Superseded as superseded:
            print(f"{settings.name}: {superseded.__cause__!r}", file=sys.stderr)
            return GIVE_UP
    return 0


if __name__ == "__main__":
    sys.exit(main())
