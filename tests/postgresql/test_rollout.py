"""A cluster is upgraded, and its object store switched on, broker by broker, under transactions."""

from __future__ import annotations

import contextlib
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from barnabas.storage.postgresql.schema import migrations
from tests.checkout import SOURCES
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerDied
from tests.counterparts.mended_kafka_python import PatientClient
from tests.counterparts.postgresql_servers import Server
from tests.postgresql.brokers import Member, running
from tests.postgresql.test_object_store import PARTITIONS, TOPIC, read_all
from tests.products import case
from tests.waiting import wait_until

NEWEST = migrations()[-1].number
OLDER = 17
"""Newest schema without what an object store needs: brokers of it use none."""
LATER_READ = "FROM barnabas.object_access JOIN barnabas.sessions USING (session_id)"
"""Text of the query of the members for which ``OLDER`` has no table."""
NOTHING_READ = "FROM (SELECT *, now() AS failing_since FROM barnabas.sessions LIMIT 0) AS none"
RECORDS = 8
RECORD_BYTES = 4_000
ABORTED = 5
"""Every fifth transaction is aborted."""
PAUSE_S = 0.05
"""Time between two transactions."""
PROGRESS = 2
"""Number of transactions that are committed after each step."""
NOT_USED = "object store not used until these brokers have the same barnabas.storage"
STORED = {
    "barnabas.flush.object.min.bytes": "1000",
    "barnabas.flush.ms": "0",
    "barnabas.cache.max.bytes": "4194304",
}


class ReplacedMember(Member):
    """A broker of an earlier release, which is later replaced by one of this release."""

    def __init__(self, directory: Path, address: str, packages: Path) -> None:
        super().__init__(directory, address)
        self.packages = str(packages)

    def environment(self) -> dict[str, str]:
        return super().environment() | {"PYTHONPATH": self.packages}

    def end(self, how: str) -> None:
        """End the process: ``stop`` or ``kill``."""
        if how == "kill":
            self.kill()
        else:
            assert self.terminate() == 0, self.output()

    def start_ready(self) -> None:
        """Start the process, and wait as a rolling restart does."""
        self.start()
        wait_until(lambda: self.probe("/readyz") == 200, self.output)


class Writer(Thread):
    """One transaction after the other over all partitions, until ``stop``."""

    def __init__(self, addresses: list[str]) -> None:
        super().__init__(daemon=True)
        self.committed: list[bytes] = []
        self._addresses = addresses
        self._failure: BaseException | None = None
        self._has_ended = Event()

    def run(self) -> None:
        try:
            self._write()
        except BaseException as error:
            self._failure = error
            raise

    def _write(self) -> None:
        with contextlib.closing(
            KafkaProducer(
                bootstrap_servers=self._addresses,
                transactional_id="writer",
                linger_ms=5,
                kafka_client=PatientClient,
            )
        ) as producer:
            producer.init_transactions()
            number = 0
            while not self._has_ended.wait(PAUSE_S):
                values = [
                    b"%d-%d " % (number, each) + bytes(RECORD_BYTES) for each in range(RECORDS)
                ]
                producer.begin_transaction()
                sent = [
                    producer.send(TOPIC, value, partition=each % PARTITIONS)
                    for each, value in enumerate(values)
                ]
                if number % ABORTED == ABORTED - 1:
                    producer.abort_transaction()
                else:
                    producer.commit_transaction()
                    assert all(each.succeeded() for each in sent)
                    self.committed += values
                number += 1

    def see_progress(self) -> None:
        """Wait for more committed transactions."""
        wanted = len(self.committed) + PROGRESS * RECORDS

        def has_progressed() -> bool:
            assert self._failure is None, self._failure
            return len(self.committed) >= wanted

        wait_until(has_progressed, lambda: f"{len(self.committed)} of {wanted} committed")

    def stop(self) -> None:
        """End after the current transaction."""
        self._has_ended.set()
        self.join(60)
        assert not self.is_alive(), "the producer waits"
        assert self._failure is None, self._failure


@pytest.fixture(scope="module")
def older_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return this checkout's packages without the migrations after ``OLDER``."""
    packages = tmp_path_factory.mktemp("older") / "packages"
    shutil.copytree(SOURCES, packages, ignore=shutil.ignore_patterns("__pycache__"))
    folder = packages / "barnabas" / "storage" / "postgresql" / "migrations"
    for migration in migrations():
        if migration.number > OLDER:
            (folder / f"{migration.number:04}_{migration.name}.sql").unlink()
    index = packages / "barnabas" / "storage" / "postgresql" / "postgresql_cluster_index.py"
    text = index.read_text()
    assert LATER_READ in text
    index.write_text(text.replace(LATER_READ, NOTHING_READ))
    return packages


@contextlib.contextmanager
def written(members: list[ReplacedMember]) -> Iterator[Writer]:
    """Write transactions until the end of the block."""
    addresses = [each.bootstrap_servers for each in members]
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=addresses)) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
    writer = Writer(addresses)
    writer.start()
    try:
        writer.see_progress()
        yield writer
    finally:
        writer.stop()


def schema_of(server: Server) -> int:
    ((newest,),) = server.execute("SELECT max(number) FROM barnabas.migrations")
    return newest


def upgrade(members: list[ReplacedMember], ends: tuple[str, ...], writer: Writer) -> None:
    """Replace one broker after the other by one of this release, as docs/cluster.md says."""
    newest = f"the database has version {NEWEST} of the schema, this release knows {OLDER}"
    for number, (member, how) in enumerate(zip(members, ends, strict=True)):
        member.end(how)
        if number == 1:
            with pytest.raises(BrokerDied, match=newest):
                member.start()
        member.packages = BarnabasProcess.packages
        member.start_ready()
        writer.see_progress()


def switch_on(
    members: list[ReplacedMember], store: Path, ends: tuple[str, ...], writer: Writer
) -> None:
    """Give one broker after the other the object store."""
    *first, last = members
    for member, how in zip(members, ends, strict=True):
        if member is last:
            wait_until(lambda: all(NOT_USED in each.output(limit=1 << 20) for each in first))
            assert not [each for each in store.rglob("wal/*/*") if each.is_file()]
        member.end(how)
        member.overrides |= STORED | {"barnabas.storage": f"file://{store}"}
        member.start_ready()
        writer.see_progress()


@pytest.mark.parametrize(
    "ends",
    [
        case(("stop", "kill", "stop"), in_test=True),
        case(("kill", "kill", "kill"), in_test=False),
        case(("stop", "stop", "kill"), in_test=False),
    ],
    ids="-".join,
)
def test_rollout_of_a_schema_and_an_object_store_has_each_record_once(
    tmp_path: Path, older_packages: Path, ends: tuple[str, ...]
) -> None:
    store = tmp_path / "objects"
    with Server() as server:
        members = [
            ReplacedMember(tmp_path / f"broker-{each}", server.url, older_packages)
            for each in range(len(ends))
        ]
        with running(members):
            assert schema_of(server) == OLDER
            with written(members) as writer:
                upgrade(members, ends, writer)
                assert schema_of(server) == NEWEST
                switch_on(members, store, ends, writer)
                wait_until(lambda: any(store.rglob("wal/*/*")), "objects")
                writer.see_progress()
                # A broker without the object store gets no session any more.
                members[0].end("stop")
                del members[0].overrides["barnabas.storage"]
                with pytest.raises(BrokerDied, match=r"barnabas\.storage of broker \d+ is not set"):
                    members[0].start()
                writer.see_progress()
            found = read_all(members[1].bootstrap_servers, len(writer.committed))
            assert Counter(found) == Counter(writer.committed)
