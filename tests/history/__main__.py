"""`python -m tests.history FILE`: check a saved history again; exit 1 when something is wrong."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.history.checker import check, lines
from tests.history.model import load


def main() -> int:
    """Check each file; 0 when nothing is wrong, 1 when something is, 2 for what is no history."""
    parser = argparse.ArgumentParser(prog="python -m tests.history", description=__doc__)
    parser.add_argument("file", nargs="+", type=Path, help="JSON lines, one operation on each")
    wrong = False
    for path in parser.parse_args().file:
        try:
            history = load(path)
        except (OSError, ValueError) as error:
            print(error, file=sys.stderr)
            return 2
        report = check(history)
        print(f"{path}:")
        for line in lines(report, history):
            print(f"  {line}")
        wrong = wrong or bool(report.violations)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
