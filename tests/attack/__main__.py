"""`python -m tests.attack --duration 600 --seed 1`: every scenario for its share of that time."""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.attack.run import run
from tests.attack.scenarios import ALL


def main() -> int:
    """Attack; exit 0 when nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--duration", type=float, default=600, help="seconds, all together")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20))
    parser.add_argument("--only", action="append", help="names of scenarios; all by default")
    parser.add_argument("--list", action="store_true", help="say which scenarios there are")
    arguments = parser.parse_args()
    chosen = [each for each in ALL if not arguments.only or each.name in arguments.only]
    if arguments.list or not chosen:
        print("\n".join(each.name for each in ALL))
        return 0 if arguments.list else 2
    # Leave no broker behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    wrong = []
    weights = sum(each.weight for each in chosen)
    for scenario in chosen:
        # Stays when something is wrong: the log and the data.
        directory = Path(tempfile.mkdtemp(prefix=f"attack-{scenario.name}-"))
        duration_s = arguments.duration * scenario.weight / weights
        outcome = run(scenario, arguments.seed, duration_s, directory)
        print("\n".join(outcome.lines()), flush=True)
        if outcome.violations:
            print(f"  kept: {directory}", flush=True)
            wrong.append(scenario.name)
        else:
            shutil.rmtree(directory)
    print("WRONG: " + ", ".join(wrong) if wrong else "all right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
