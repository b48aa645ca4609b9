"""Apache Kafka's DumpLogSegments as judge of the files a broker wrote.

The tool prints its complaints and exits 0 in any case, so the tests judge its output.
"""

import re
from pathlib import Path

from tests.counterparts.kafka_tools import DUMP_LOG_SEGMENTS, run_tool

SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
# Of two offsets that do not follow each other, "-1 is followed by N" is how the tool greets the
# first record of every segment but the oldest.
_COMPLAINT = re.compile(
    r"isvalid: false|mismatch|not found|corrupt|exception|error|invalid|could not"
    r"|^\s*\d+ is followed by",
    re.IGNORECASE,
)
_LINES_KEPT = 20


def segment_files(data_directory: Path) -> list[Path]:
    """Return every file of the partition directories that DumpLogSegments understands."""
    found = (path for path in data_directory.glob("*-*/*") if path.suffix in SUFFIXES)
    return sorted(found)


_GAP = re.compile(r"^\s*\d+ is followed by|Non-consecutive offsets", re.IGNORECASE)


def complaints(files: list[Path], *, compacted: bool = False) -> list[str]:
    """Return the lines in which DumpLogSegments finds fault with the files; empty is good.

    ``compacted``: offsets that do not follow each other are no fault.
    """
    assert files, "there is nothing to judge"
    arguments = ["--deep-iteration", "--files", ",".join(map(str, files))]
    result = run_tool(DUMP_LOG_SEGMENTS, *arguments, timeout_s=300)
    lines = result.output.splitlines()
    found = [line for line in lines if _COMPLAINT.search(line)]
    if compacted:
        found = [line for line in found if not _GAP.search(line)]
    # A file the tool did not even open would otherwise count as flawless.
    dumped = {line.removeprefix("Dumping ") for line in lines if line.startswith("Dumping ")}
    found += [f"not dumped: {path}" for path in files if str(path) not in dumped]
    if result.exit_code:
        found.append(f"exit code {result.exit_code}")
    return found[:_LINES_KEPT]
