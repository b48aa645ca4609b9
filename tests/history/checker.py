"""Everything that is wrong with a history, and a report of it for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.history import cycles, groups, members, offsets, reads, sends, transactions
from tests.history.anomalies import MEANINGS, NOTE_SEND_SKIP, Report
from tests.history.evidence import Evidence
from tests.history.model import History

SHOWN_PER_ANOMALY = 5


def check(history: History) -> Report:
    """Check a history for every anomaly; the operations of each process must be in their order."""
    evidence = Evidence(history)
    report = Report()
    for part in (reads, sends, transactions, cycles, groups, members, offsets):
        report.violations += part.find(evidence)
    report.notes = {**cycles.notes(evidence), NOTE_SEND_SKIP: sends.skips(evidence)}
    report.counts = Counter(f"{each.kind} {each.outcome}" for each in history)
    report.lag_s = transactions.lag_s(evidence)
    report.stuck_s = transactions.stuck_s(evidence)
    return report


def lines(report: Report, history: History) -> Iterator[str]:
    """Yield the report for people: figures, then every anomaly with the operations concerned."""
    yield ", ".join(f"{count} {name}" for name, count in sorted(report.counts.items()))
    normal = ", ".join(f"{name} {count}" for name, count in report.notes.items() if count)
    yield f"normal, since writes are not isolated: {normal or 'nothing'}"
    median_s, most_s = report.lag_s
    yield f"read after its commit was acknowledged: median {median_s:.3f} s, most {most_s:.3f} s"
    yield f"of this while other writes were acknowledged: {report.stuck_s:.3f} s at most"
    for anomaly, count in Counter(each.anomaly for each in report.violations).items():
        yield f"{anomaly}, {count} times: {MEANINGS[anomaly]}"
        found = [each for each in report.violations if each.anomaly == anomaly]
        for violation in found[:SHOWN_PER_ANOMALY]:
            yield f"  {violation.text}"
            for number in violation.operations:
                yield f"    #{number} {history[number].described()}"
        if count > SHOWN_PER_ANOMALY:
            yield f"  and {count - SHOWN_PER_ANOMALY} more"
    yield "WRONG" if report.violations else "nothing is wrong"
