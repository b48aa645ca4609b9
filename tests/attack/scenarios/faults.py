"""File calls of a real broker that fail, one after the other: every kind, file, error and place.

A broker may return the protocol's own error, or stop with one clear line and an exit code. It never
hangs and never writes a traceback. After a restart every acknowledged record exists.
"""

from __future__ import annotations

import errno
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.messages.produce import PRODUCE
from tests.attack.process import AttackedBroker
from tests.attack.scenario import DirectoryScenario, Sent
from tests.attack.shim import FOR_EVER, SHORT, Shim
from tests.attack.workshop import Acknowledged, Workshop
from tests.broker.data_plane import Named, batch, fetch_request, produce_request
from tests.counterparts.broker_process import BrokerDied
from tests.counterparts.offsets_client import OffsetsClient
from tests.crash.transaction_client import Producer, committed_offset, persistent
from tests.requests import create_topic

SETTINGS = {
    "log_segment_bytes": "1048576",
    "message_max_bytes": "1000000",
    "log_retention_ms": "-1",
    "barnabas_journal_file_bytes": "1052672",
    "barnabas_journal_max_bytes": "8388608",
    "barnabas_checkpoint_interval_ms": "150",
    "barnabas_checkpoint_journal_bytes": "2097152",
    "offsets_topic_num_partitions": "2",
    "transaction_state_log_num_partitions": "2",
}
ANSWER_TIMEOUT_S = 90.0
END_TIMEOUT_S = 90.0
FOR_EVER_S = 8.0
MENDED_S = 60.0
FAULT_S = 3.0
"""Maximum wait for the call that fails: some calls belong to a checkpoint only."""
ROUNDS_LEAST = 14
RECORDS = "recorded"
PAID = "paid"
GROUP = "group"
SIZES = (100, 4_000, 60_000, 300_000)

ERRORS = (errno.EIO, errno.ENOSPC, errno.EROFS)
TRANSFERS = (*ERRORS, SHORT)
FILES: dict[str, tuple[str, ...]] = {
    "write": ("journal-", "commit-mark", ".log", "index", ".snapshot", "checkpoint-", ".sqlite"),
    "sync": ("journal-", "commit-mark", ".log", "index", "checkpoint-", ".sqlite", "/data"),
    "open": (".log", "checkpoint-", ".snapshot", "/data"),
    "create": ("journal-", ".log", "index", ".tmp"),
    "rename": ("checkpoint-", ".snapshot"),
    "unlink": (".log", ".snapshot"),
    "truncate": (".tmp", ".log"),
    "allocate": ("journal-", ".log"),
    "sync_range": (".log", "commit-mark"),
    "mmap": (".sqlite",),
    "read": (".log", ".sqlite", "journal-"),
    "sendfile": (".log",),
    "mkdir": ("/data",),
}


class Fault(NamedTuple):
    """A fault; ``at_start``: the broker gets it during its start."""

    kind: str
    path: str
    error: int
    skip: int
    times: int
    at_start: bool

    def __str__(self) -> str:
        error = "half" if self.error == SHORT else errno.errorcode[self.error]
        times = "for ever" if self.times == FOR_EVER else f"{self.times} times"
        when = "at the start" if self.at_start else "under load"
        return f"{self.kind} of {self.path}: {error} {times} after {self.skip}, {when}"


FIRST = (
    Fault("write", "journal-", errno.EIO, 1, 1, False),
    Fault("write", "journal-", errno.ENOSPC, 1, 3, False),
    Fault("sync", "journal-", errno.EIO, 2, 1, False),
    Fault("write", ".log", errno.ENOSPC, 0, FOR_EVER, False),
    Fault("create", "journal-", errno.ENOSPC, 0, FOR_EVER, False),
    Fault("write", ".sqlite", errno.EIO, 0, 1, False),
    Fault("sync", "/data", errno.EIO, 0, 1, False),
    Fault("write", "checkpoint-", errno.EROFS, 0, 1, False),
    Fault("read", ".log", errno.EIO, 0, 2, False),
    Fault("write", ".sqlite", errno.ENOSPC, 0, FOR_EVER, False),
    Fault("write", "journal-", SHORT, 0, 5, False),
    Fault("write", "journal-", errno.EROFS, 0, FOR_EVER, True),
    Fault("read", "journal-", errno.EIO, 0, FOR_EVER, True),
    Fault("write", "commit-mark", errno.ENOSPC, 0, FOR_EVER, False),
)
"""The faults that `make test` always injects."""


def faults(rng: random.Random) -> Iterator[Fault]:
    """The first ones, then all there are in any order, again and again."""
    yield from FIRST
    kinds = [(kind, path) for kind, paths in FILES.items() for path in paths]
    while True:
        for kind, path in rng.sample(kinds, len(kinds)):
            error = rng.choice(TRANSFERS if kind in {"write", "read", "sendfile"} else ERRORS)
            times = rng.choice((1, 1, 4, FOR_EVER))
            yield Fault(kind, path, error, rng.choice((0, 0, 1, 5)), times, rng.random() < 0.25)


@dataclass
class Load:
    """The sent records, and the acknowledged ones."""

    records: dict[int, bytes] = field(default_factory=dict)
    paid: list[bytes] = field(default_factory=list)
    committed: int = 0
    tried: int = 0
    number: int = 0
    codes: set[int] = field(default_factory=set)

    def run(self, broker: AttackedBroker, shim: Shim) -> None:
        """Do a little of everything until the fault has come; raises OSError if the broker goes."""
        until_s = time.monotonic() + FAULT_S
        with OffsetsClient(broker, ANSWER_TIMEOUT_S) as client:
            while True:
                self._round(client)
                if shim.hits or time.monotonic() > until_s:
                    break
            self._round(client)

    def _round(self, client: OffsetsClient) -> None:
        for size in SIZES:
            self._produce(client, size)
        self.tried += 1
        if self._note(*client.commit_plainly(GROUP, {(RECORDS, 0): self.tried})):
            self.committed = self.tried
        self._pay(client)
        self._make_topic(client)
        self._read(client)
        client.fetch(GROUP)

    def _note(self, *codes: int) -> bool:
        self.codes |= set(codes)
        return not any(codes)

    def _value(self, size: int) -> bytes:
        self.number += 1
        return b"%08d" % self.number * (size // 8)

    def _produce(self, client: OffsetsClient, size: int) -> None:
        value = self._value(size)
        request = produce_request(9, Named(RECORDS), (0, batch(value)))
        answer = client.ask(PRODUCE, request, 9).responses[0].partition_responses[0]
        if self._note(answer.error_code):
            self.records[answer.base_offset] = value

    def _pay(self, client: OffsetsClient) -> None:
        producer, place = Producer(client, f"payer-{self.number}"), (PAID, 0)
        value = self._value(100)
        if (
            self._note(producer.init())
            and self._note(producer.add(place))
            and self._note(producer.write(place, value)[0])
            and self._note(producer.end())
        ):
            self.paid.append(value)

    def _read(self, client: OffsetsClient) -> None:
        """Read something old, whose file is closed perhaps, and something new."""
        for offset in (0, max(self.records, default=0)):
            asked = fetch_request(11, (Named(RECORDS), (0, offset)), partition_max_bytes=1 << 20)
            answer = client.ask(FETCH, asked, 11)
            self._note(answer.error_code or answer.responses[0].partitions[0].error_code)

    def _make_topic(self, client: OffsetsClient) -> None:
        name = f"short-lived-{self.number}"
        made = client.ask(CREATE_TOPICS, CreateTopicsRequest([CreatableTopic(name, 2, 1)]), 5)
        self._note(made.topics[0].error_code)
        gone = client.ask(DELETE_TOPICS, DeleteTopicsRequest(topic_names=[name]), 5)
        code = gone.responses[0].error_code
        self._note(0 if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else code)


class Hurting:
    """One directory, a broker on it again and again, and the faults that it meets."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self._shim = Shim(workshop.directory / "shim")
        self._load = Load()
        self._seen = 0
        self._broker = workshop.broker(variables=self._shim.variables, **SETTINGS)
        self.sent = Sent()

    def run(self, seed: int, duration_s: float) -> Sent:
        until_s = time.monotonic() + duration_s
        with self._broker as broker:
            with OffsetsClient(broker) as client:
                for topic in (RECORDS, PAID):
                    create_topic(client, topic, 1)
                client.find(GROUP, 0)
                persistent(lambda: max(client.commit_plainly(GROUP, {(RECORDS, 0): 0})))
                persistent(Producer(client, "first").init)
            for count, fault in enumerate(faults(random.Random(seed)), start=1):
                self._hurt(fault)
                if count >= ROUNDS_LEAST and time.monotonic() > until_s:
                    break
            broker.kill()
            self._start(None)
            self._verify("at the end")
            self._workshop.expect(broker.terminate() == 0, "the last stop was not in good order")
        return self.sent

    def _hurt(self, fault: Fault) -> None:
        shim, fields = self._shim, fault[:3]
        self._load.codes.clear()
        self._seen = self._size_of_output()
        if fault.at_start:
            self._broker.kill()
        shim.fail(*fields, skip=fault.skip, times=fault.times)
        # The disk gets room again, and waiting requests continue.
        end = threading.Timer(FOR_EVER_S, shim.stop)
        end.start()
        try:
            if not fault.at_start or self._start(fault):
                self._under_load(fault)
        finally:
            end.cancel()
            shim.stop()
            self.sent["faults"] += 1
            self.sent["failed calls"] += shim.hits
        if not self._broker.is_running:
            self._start(None)
        self._verify(str(fault))

    def _under_load(self, fault: Fault) -> None:
        """Work until the fault has come; then the broker serves, or ends as it should."""
        expect, broker = self._workshop.expect, self._broker
        try:
            self._load.run(broker, self._shim)
        except TimeoutError:
            expect(condition=False, text=f"{fault}: an answer did not come")
            broker.kill()
            return
        except OSError:
            self._wait_for_end(fault)
        self.sent["errors answered"] += len(self._load.codes - {0})
        unknown = ErrorCode.UNKNOWN_SERVER_ERROR in self._load.codes
        expect(not unknown, f"{fault}: UNKNOWN_SERVER_ERROR was answered")
        self._look_at_log(str(fault))

    def _wait_for_end(self, fault: Fault) -> None:
        """Wait until the broker ends by itself with a log line, after it closed the connection.

        If it could not read a file that it had started to send, it only closes the connection, and
        logs that.
        """
        patience_s = END_TIMEOUT_S if fault.kind != "sendfile" else 1.0
        code = self._broker.wait(patience_s)
        if code is None and "WARNING connection closed: " in self._new_output():
            self.sent["hung up"] += 1
            return
        if code is None:
            self._workshop.expect(condition=False, text=f"{fault}: hung up, but did not end")
            self._broker.kill()
            return
        self.sent["stops"] += 1
        self._workshop.expect(code == 1, f"{fault}: exit code {code}")
        said = self._new_output().count("broker stops")
        self._workshop.expect(said == 1, f"{fault}: {said} lines say why it ended")

    def _start(self, fault: Fault | None) -> bool:
        """Start the broker; False where it refused to, which only a fault may make it do."""
        self._look_at_log("before a start")
        self._seen = self._size_of_output()
        try:
            self._broker.start()
        except BrokerDied as error:
            lines = self._new_output().splitlines()
            said = [line for line in lines if line.startswith("barnabas: ")]
            self._workshop.expect(fault, f"did not start again: {said or lines[-1:]}")
            self._workshop.expect("exited 1:" in str(error), f"{fault}: {str(error)[:100]}")
            self._workshop.expect(len(said) == 1, f"{fault}: refused with {said or lines[-1:]}")
            self.sent["refused starts"] += 1
        self._look_at_log(str(fault))
        return self._broker.is_running

    def _verify(self, after: str) -> None:
        """Check that every acknowledged record exists."""
        workshop, load, broker = self._workshop, self._load, self._broker
        try:
            found = self._values(RECORDS)
            paid = set(self._values(PAID).values())
            with OffsetsClient(broker, ANSWER_TIMEOUT_S) as client:
                committed = committed_offset(client, GROUP, (RECORDS, 0))
        except (OSError, AssertionError) as error:
            workshop.expect(condition=False, text=f"{after}: not readable: {error!r}")
            return
        lost = [offset for offset, value in load.records.items() if found.get(offset) != value]
        workshop.expect(not lost, f"{after}: the records at {lost} are gone")
        workshop.expect(paid.issuperset(load.paid), f"{after}: payments are gone")
        known = committed is not None and load.committed <= committed <= load.tried
        workshop.expect(known, f"{after}: offset {committed}, {load.committed} was acknowledged")
        self.sent["records verified"] += len(found) + len(paid)

    def _values(self, topic: str) -> Acknowledged:
        """Read a topic. What could not be read is offline until a read has it tried again."""
        until_s = time.monotonic() + MENDED_S
        while True:
            try:
                return self._workshop.values(self._broker, topic)
            except ConnectionError as error:
                offline = f"error {ErrorCode.KAFKA_STORAGE_ERROR.value}" in str(error)
                if not offline or time.monotonic() > until_s:
                    raise
            time.sleep(0.2)

    def _size_of_output(self) -> int:
        path = self._broker.output_path
        return path.stat().st_size if path.exists() else 0

    def _new_output(self) -> str:
        if not self._broker.output_path.exists():
            return ""
        return self._broker.output_path.read_bytes()[self._seen :].decode(errors="replace")

    def _look_at_log(self, after: str) -> None:
        clear = "Traceback (most recent call last)" not in self._new_output()
        self._workshop.expect(clear, f"{after}: a traceback in the log")
        if not clear:
            self._seen = self._size_of_output()


def hurt(workshop: Workshop, seed: int, duration_s: float) -> Sent:
    """Make calls fail for ``duration_s``, and each of FIRST at least once."""
    return Hurting(workshop).run(seed, duration_s)


SCENARIOS = (DirectoryScenario("file-faults", hurt, weight=4),)
