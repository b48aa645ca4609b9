"""Clients by wire as threads, for a World or an embedded cluster; and their judgement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from tests.history import checker
from tests.history.model import COMMITTED, UNCOMMITTED, History
from tests.waiting import wait_until
from tests.workload.drivers.wire import Look, addresses_of
from tests.workload.journal import in_order
from tests.workload.judge import not_retried, read_at_the_end, wait_for_ends
from tests.workload.settings import INPUTS, LEFT, PATIENT_MS, PLACES, RIGHT, Kind, Settings
from tests.workload.threads import ThreadClient

READS: dict[str, Any] = {"topics": (LEFT, RIGHT), "group": "members", "leaves": 0.03}
SMALL = (0, 0, 200)
"""Padding of bulk senders: in a World more would only take long."""
ABORTABLE = "TRANSACTION_ABORTABLE"
"""Error after which any client may abort its transaction."""

KINDS = tuple(
    kind._replace(transaction_timeout_ms=PATIENT_MS)
    for kind in (
        Kind("sender", "wire"),
        Kind("bulk", "wire"),
        Kind("committer", "wire"),
        Kind("writer", "wire_classic"),
        Kind("writer", "wire"),
        # Two clients with one id, which fence each other all the time.
        Kind("writer", "wire_classic", "duel"),
        Kind("writer", "wire", "duel"),
        Kind("transformer", "wire_classic"),
        Kind("transformer", "wire"),
        Kind("member", "wire"),
        Kind("member", "wire"),
        Kind("reader", "wire", isolation=COMMITTED),
        Kind("reader", "wire", isolation=UNCOMMITTED),
    )
)


class Workload:
    """``with Workload(servers, seed) as workload:`` runs all clients."""

    def __init__(
        self,
        servers: str,
        seed: int,
        rest_s: float | None = None,
        kinds: Sequence[Kind] = KINDS,
        pads: tuple[int, ...] = SMALL,
    ) -> None:
        """``rest_s``: the longest time from one operation of a client to its next one."""
        self.servers = servers
        names = [f"{kind.role}-{kind.library}-{number}" for number, kind in enumerate(kinds)]
        self.clients = [
            ThreadClient(Settings.of(kind, name, servers, seed, rest_s=rest_s, pads=pads, **READS))
            for kind, name in zip(kinds, names, strict=True)
        ]
        by_name = dict(zip(names, kinds, strict=True))
        self._may_fail = {
            name
            for name, kind in by_name.items()
            if kind.transactional_id or kind.role == "abandoner" or kind.library == "wire_plain"
        }

    def __enter__(self) -> Self:
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        """Stop all clients, also after a failure."""
        for client in self.clients:
            client.is_stopping = True

    @property
    def done(self) -> dict[str, int]:
        """Number of operations of each client."""
        return {client.settings.name: client.done for client in self.clients}

    def raise_errors(self) -> None:
        """Raise the error that a client ended with."""
        for client in self.clients:
            if client.error is not None:
                raise AssertionError(f"{client.settings.name}: {client.error!r}") from client.error

    def goes_on(self, times: int = 1) -> None:
        """Wait until each client has performed ``times`` more operations."""
        before = self.done

        def all_have() -> bool:
            self.raise_errors()
            return all(done >= before[name] + times for name, done in self.done.items())

        wait_until(all_have, lambda: self.done)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep all clients from beginning another operation; each ends its present one first."""
        for client in self.clients:
            client.is_held = True
        wait_until(self._are_idle, lambda: self.done)
        yield
        for client in self.clients:
            client.is_held = False

    def _are_idle(self) -> bool:
        self.raise_errors()
        return all(client.is_idle for client in self.clients)

    def end(self) -> None:
        """Stop all clients; each ends its operation first."""
        for client in self.clients:
            client.is_stopping = True
        for client in self.clients:
            client.stop()
        self.raise_errors()

    def _alone(self, history: History) -> History:
        """Return the operations that must not fail.

        Those of clients whose transactions another client or their timeout may end, and of those
        that do not repeat what is lost, may.
        """
        return [each for each in history if each.process.partition("#")[0] not in self._may_fail]

    def history(self) -> History:
        """Return the operations of all clients up to now."""
        return in_order([*client.events] for client in self.clients)

    def judge(self) -> History:
        """Read everything, and check the history of all clients; return it."""
        wait_for_ends(addresses_of(self.servers))
        history = self.history()
        wrong = [each for each in not_retried(self._alone(history)) if ABORTABLE not in each]
        assert not wrong, wrong
        history += self.read("final")
        assert_sound(history)
        return history

    def read(self, name: str, servers: str = "") -> History:
        """Read everything that there is, in other brokers than its own if ``servers`` says so."""
        look = Look(servers or self.servers)
        groups = {f"group-{name}": INPUTS for name in self.done if name.startswith("transformer")}
        groups[READS["group"]] = [each for each in PLACES if each[0] in READS["topics"]]
        history = read_at_the_end(look, name, PLACES, groups)
        look.close()
        return history


def assert_sound(history: History) -> None:
    """Raise AssertionError if anything is wrong with a history."""
    report = checker.check(history)
    assert not report.violations, "\n".join(checker.lines(report, history))
