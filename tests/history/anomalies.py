"""The anomalies that the checker detects, with the meaning of each.

Ids in parentheses are those of the invariants that a violation contradicts. In Kafka's model writes
are not isolated: transactions interleave in a partition, and in another one in another order. What
follows from that alone is noted and no violation:

* G0: a cycle of transactions by the order of their writes, also when it closes through the order of
  operations in one process or in real time. Only this is wrong: of two operations, one after the
  other in real time, the later one's write precedes the earlier one's (`G0-realtime`).
* G1c with write-write dependencies. A transaction may write behind an open one's record in one
  partition, commit, and be read by that open one in another partition. Wrong is only a cycle of
  write-read dependencies.
* Records of other writers between two of a transaction: `internal send skip`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

INCONSISTENT_OFFSETS = "inconsistent offsets"
INCOMPATIBLE_ORDER = "incompatible order"
DUPLICATE = "duplicate"
UNWRITTEN_READ = "unwritten read"
ABORTED_READ = "G1a aborted read"
EARLY_READ = "early read"
PRECOMMITTED_READ = "precommitted read"
CIRCULAR_FLOW = "G1c circular information flow"
CIRCULAR_FLOW_PROCESS = "G1c-process"
CIRCULAR_FLOW_REALTIME = "G1c-realtime"
DIRTY_WRITE_REALTIME = "G0-realtime"
TORN_TRANSACTION = "torn transaction"
LOST_WRITE = "lost write"
GONE = "gone"
UNSEEN = "unseen"
HANGING = "hanging transaction"
NONMONOTONIC_POLL = "nonmonotonic poll"
POLL_SKIP = "poll skip"
INTERNAL_NONMONOTONIC_POLL = "internal nonmonotonic poll"
INTERNAL_POLL_SKIP = "internal poll skip"
NONMONOTONIC_SEND = "nonmonotonic send"
INTERNAL_NONMONOTONIC_SEND = "internal nonmonotonic send"
CONSUMED_TWICE = "consumed twice"
PROCESSED_TWICE = "processed twice"
UNPROCESSED = "input without output"
OFFSETS_DIFFER = "offsets differ from outputs"
PASSED_OVER = "passed over"
READ_AGAIN = "read again"
OWNED_TWICE = "owned twice"
DISTURBED = "disturbed"
OFFSET_WENT_BACK = "offset went back"
COMMIT_UNSEEN = "commit unseen"
OFFSETS_CHANGED = "offsets changed"
LOG_WENT_BACK = "log of offsets went back"
LOG_DIFFERS = "log of offsets differs"
COMMIT_NOT_LOGGED = "commit not logged"
REFUSED_COMMIT_LOGGED = "refused commit logged"

MEANINGS = {
    INCONSISTENT_OFFSETS: "two values were seen at one offset (L8, S3)",
    INCOMPATIBLE_ORDER: "two readers saw the same values in different orders (L8)",
    DUPLICATE: "one value stands at two offsets (S2)",
    UNWRITTEN_READ: "a value was read that nobody sent there (S3)",
    ABORTED_READ: "a value was read whose transaction was aborted (L2, C4)",
    EARLY_READ: "a value was read before anybody had asked to commit it (L2)",
    PRECOMMITTED_READ: "a transaction read what it wrote itself (L2)",
    CIRCULAR_FLOW: "transactions read each other's writes in a circle (L2)",
    CIRCULAR_FLOW_PROCESS: "a circle of reads, closed by the order of a process (L2)",
    CIRCULAR_FLOW_REALTIME: "a circle of reads, closed by real time (L2)",
    DIRTY_WRITE_REALTIME: "who came later in real time stands before in the log (S12)",
    TORN_TRANSACTION: "a part of a transaction is committed, another is not (C3, O2)",
    LOST_WRITE: "a committed write was never read; readers got past its place (D1, L2)",
    GONE: "what was read or acknowledged was not there any more later (D1, L8)",
    UNSEEN: "an acknowledged write was not visible at the end (D1, L5)",
    HANGING: "a partition's last stable offset was stuck at the end (C6)",
    NONMONOTONIC_POLL: "from one poll to the next a partition went back (L8)",
    POLL_SKIP: "from one poll to the next existing records were jumped over (L2)",
    INTERNAL_NONMONOTONIC_POLL: "inside one poll a partition went back (L8)",
    INTERNAL_POLL_SKIP: "inside one poll existing records were jumped over (L2)",
    NONMONOTONIC_SEND: "a producer's later send stands before its earlier one (S12)",
    INTERNAL_NONMONOTONIC_SEND: "the same inside one transaction (S12)",
    CONSUMED_TWICE: "a consumer got a value in two successful operations, not rebalanced (O6)",
    PROCESSED_TWICE: "an input has two committed outputs (O6)",
    UNPROCESSED: "an input before the committed offset has no committed output (O6)",
    OFFSETS_DIFFER: "committed offsets are not those of the committed outputs (O1, O2)",
    PASSED_OVER: "a group's offset is behind a record that none of its members read (L8)",
    READ_AGAIN: "a member began before what had been committed when it was assigned (O1)",
    OWNED_TWICE: "a partition was assigned before its owner had given it up (O10)",
    DISTURBED: "a member was rebalanced while a static member restarted (O8)",
    OFFSET_WENT_BACK: "a committed offset went back, or disappeared (O1)",
    COMMIT_UNSEEN: "a coordinator returned less than was acknowledged before (D1)",
    OFFSETS_CHANGED: "committed offsets changed without a commit (O8)",
    LOG_WENT_BACK: "in the log a committed offset went back (O1)",
    LOG_DIFFERS: "the committed offset is not the last one in the log (O1)",
    COMMIT_NOT_LOGGED: "an acknowledged commit is not in the log (D1)",
    REFUSED_COMMIT_LOGGED: "a refused commit is in the log (O5)",
}

NOTE_DIRTY_WRITE = "G0 dirty write"
NOTE_DIRTY_WRITE_PROCESS = "G0-process"
NOTE_DIRTY_WRITE_REALTIME = "G0-realtime through several"
NOTE_CIRCULAR_FLOW = "G1c through the order of writes"
NOTE_SEND_SKIP = "internal send skip"


class Violation(NamedTuple):
    """One thing that is wrong, with the numbers of the operations concerned."""

    anomaly: str
    text: str
    operations: tuple[int, ...]


@dataclass
class Report:
    """The findings of a checker."""

    violations: list[Violation] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    """The number of cases of each anomaly that is normal in Kafka's model."""
    counts: dict[str, int] = field(default_factory=dict)
    lag_s: tuple[float, float] = (0.0, 0.0)
    """The median and the longest time for which acknowledged commits stayed unread."""
    stuck_s: float = 0.0
    """The longest of it without the times in which no write at all was acknowledged."""

    @property
    def anomalies(self) -> set[str]:
        return {violation.anomaly for violation in self.violations}
