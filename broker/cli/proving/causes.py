"""Usual causes of findings, by what the proxy has seen of a program's requests."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from barnabas.broker.cli.proving import calls as names
from barnabas.broker.cli.proving.calls import Call
from barnabas.broker.cli.proving.instances import instance_of
from barnabas.broker.cli.proving.judge import ABORTED, BEHIND, LOST, OUT_OF_ORDER, TWICE

_AUTOMATIC: Final = 1.7
"""Ends of transactions for each commit of offsets, from which on the commits are automatic."""
_AUTOMATIC_BY_READS: Final = 2.5
"""The same for reads with records."""

_FEW: Final = 3
"""Number of batches without a commit that a kill of the program explains."""


class Cause(NamedTuple):
    """A usual cause, for people; ``page`` explains it."""

    name: str
    text: str
    page: str
    kinds: frozenset[str]
    """Findings that it explains."""
    holds: Callable[[Facts], bool]


class Facts:
    """Requests of the program, by their kind; those of the command itself are left out."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self.calls = [each for each in calls if each.process]
        self.reads = [each for each in self.calls if each.api == names.FETCH and each.read]
        self.writes = [each for each in self.calls if each.counts]
        self.ends = [each for each in self.calls if each.api == names.END and each.commits]
        self.commits = [each for each in self.calls if each.api == names.COMMIT and each.offsets]
        self.commits_in_transactions = [
            each for each in self.calls if each.api == names.COMMIT_IN_TRANSACTION and each.offsets
        ]

    @property
    def reads_uncommitted(self) -> bool:
        """Whether inputs were read with isolation.level=read_uncommitted."""
        return any(not each.isolation for each in self.reads)

    @property
    def begins_late(self) -> bool:
        """Whether no process has read the first inputs of a partition."""
        first: dict[int, int] = {}
        for each in self.reads:
            for partition, (offset, _) in each.read.items():
                first[partition] = min(offset, first.get(partition, offset))
        return any(first.values())

    @property
    def has_plain_writes(self) -> bool:
        """Whether outputs were written outside of a transaction."""
        return any(not each.transactional_id for each in self.writes)

    @property
    def is_not_idempotent(self) -> bool:
        """Whether outputs were written without idempotence."""
        return any(not each.is_idempotent for each in self.writes)

    @property
    def acks(self) -> str:
        """The acks of the outputs that were written without idempotence."""
        found = sorted({each.acks for each in self.writes if not each.is_idempotent})
        return " and ".join("all" if each < 0 else str(each) for each in found)

    @property
    def commits_outside(self) -> bool:
        """Whether offsets were committed by OffsetCommit."""
        return bool(self.commits)

    @property
    def commits_automatically(self) -> bool:
        """Whether offsets were committed at intervals, not after each batch."""
        count = len(self.commits)
        work, ratio = len(self.ends), _AUTOMATIC
        if not work:
            work, ratio = len(self.reads), _AUTOMATIC_BY_READS
        return bool(count) and work > ratio * count and work >= count + _FEW

    @property
    def processes_of_ids(self) -> dict[str, set[str]]:
        """Processes that have used each transactional ID."""
        found: dict[str, set[str]] = defaultdict(set)
        for each in self.calls:
            if each.api == names.INIT and each.transactional_id:
                found[each.transactional_id].add(each.process)
        return found

    @property
    def shares_ids(self) -> bool:
        """Whether two instances use one transactional ID, and it does not belong to a partition."""
        return bool(self._shared_ids) and not self.has_ids_of_partitions

    @property
    def has_ids_of_partitions(self) -> bool:
        """Whether transactional IDs move between processes that use several, as partitions do."""
        found = self.processes_of_ids
        uses = Counter(process for processes in found.values() for process in processes)
        return any(uses[process] > 1 for each in self._shared_ids for process in found[each])

    @property
    def _shared_ids(self) -> list[str]:
        """IDs that several instances have used."""
        return [
            each
            for each, processes in self.processes_of_ids.items()
            if len({instance_of(process) for process in processes}) > 1
        ]

    @property
    def has_no_fencing(self) -> bool:
        """Whether no successor used its predecessor's ID, or offsets name no group generation.

        A program whose IDs belong to partitions needs no generation: their new owner fences.
        """
        found = self.processes_of_ids
        processes = set[str]().union(*found.values()) if found else set[str]()
        successors = [each for each in processes if each != instance_of(each)]
        is_new_each_time = bool(successors) and all(len(each) == 1 for each in found.values())
        is_unchecked = any(each.generation < 0 for each in self.commits_in_transactions)
        return is_new_each_time or (is_unchecked and not self.has_ids_of_partitions)

    @property
    def commits_failed_sends(self) -> bool:
        """Whether a transaction was committed after one of its writes had failed."""
        failed: set[str] = set()
        for each in self.calls:
            if each.counts and (each.errors or not each.is_answered):
                failed.add(each.process)
            elif each.counts:
                failed.discard(each.process)
            elif each.api == names.END:
                if each.commits and not each.errors and each.process in failed:
                    return True
                failed.discard(each.process)
        return False


_PAGE: Final = "docs/prove.md"
CAUSES: Final = (
    Cause(
        "read-uncommitted",
        "the consumer reads inputs of open and aborted transactions: its isolation.level is "
        "read_uncommitted, the default of many clients; set read_committed",
        f"{_PAGE}#read-uncommitted",
        frozenset({ABORTED, LOST, TWICE}),
        lambda facts: facts.reads_uncommitted,
    ),
    Cause(
        "late-start",
        "the first inputs of a partition were never read: auto.offset.reset is latest, the default "
        "of most clients; set earliest",
        f"{_PAGE}#late-start",
        frozenset({LOST}),
        lambda facts: facts.begins_late,
    ),
    Cause(
        "auto-commit",
        "offsets were committed outside of the transaction, at intervals: auto-commit is on "
        "(enable.auto.commit); turn it off and send the offsets with the transaction",
        f"{_PAGE}#auto-commit",
        frozenset({LOST, TWICE, BEHIND}),
        lambda facts: facts.commits_automatically,
    ),
    Cause(
        "acks-without-idempotence",
        "outputs were written without idempotence: a request whose response is lost is sent again "
        "and written twice, or given up; set a transactional ID, or enable.idempotence=true",
        f"{_PAGE}#acks-without-idempotence",
        frozenset({LOST, TWICE, OUT_OF_ORDER, BEHIND}),
        lambda facts: facts.is_not_idempotent,
    ),
    Cause(
        "offsets-outside",
        "offsets were committed outside of the transaction, by OffsetCommit: a kill between the "
        "two commits repeats or loses inputs; send the offsets with the transaction",
        f"{_PAGE}#offsets-outside",
        frozenset({LOST, TWICE, BEHIND}),
        lambda facts: facts.commits_outside,
    ),
    Cause(
        "no-transaction",
        "outputs were written outside of a transaction: outputs and offsets do not end together",
        f"{_PAGE}#no-transaction",
        frozenset({LOST, TWICE, BEHIND}),
        lambda facts: facts.has_plain_writes,
    ),
    Cause(
        "shared-transactional-id",
        "two instances share a transactional ID: each fences the other one; give each instance an "
        "ID of its own",
        f"{_PAGE}#shared-transactional-id",
        frozenset({LOST, TWICE, BEHIND}),
        lambda facts: facts.shares_ids,
    ),
    Cause(
        "no-fencing",
        "nothing fences an instance that was replaced: its successor has another transactional ID, "
        "or the offsets are sent without the metadata of the group; use one ID for each instance, "
        "and send_offsets_to_transaction() with group_metadata()",
        f"{_PAGE}#no-fencing",
        frozenset({LOST, TWICE, BEHIND}),
        lambda facts: facts.has_no_fencing,
    ),
    Cause(
        "unchecked-send",
        "a transaction was committed although one of its writes had failed: get() was not called "
        "on a send, and kafka-python 3.0.12 commits without it; check the result of each send",
        f"{_PAGE}#unchecked-send",
        frozenset({LOST}),
        lambda facts: facts.commits_failed_sends,
    ),
)
"""Causes, the most specific ones first."""


def causes_of(kind: str, calls: Sequence[Call]) -> list[Cause]:
    """Return the usual causes of a finding that fit the requests, the likeliest one first."""
    facts = Facts(calls)
    return [each for each in CAUSES if kind in each.kinds and each.holds(facts)]
