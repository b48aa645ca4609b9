"""``make torture-simulated``: ``tests.cluster.torture`` with many seeds, a process for each."""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import Queue

from tests.cluster.nemesis import HURRIED, STEADY
from tests.cluster.torture import torture
from tests.seeds import SEED


def survives(seed: int, seconds: float, *, is_hurried: bool) -> bool:
    """Torture a cluster and print the result; return whether everything agreed."""
    # Nearly all objects are the history of this world and live to its end. The search for cycles
    # among them would be a sixth of the work.
    gc.disable()
    started_s, computed_s = time.monotonic(), time.process_time()
    try:
        found = torture(seed, seconds, HURRIED if is_hurried else STEADY)
    except Exception:  # noqa: BLE001  Printed, and counted in the exit code.
        traceback.print_exc()
        print(
            f"failed: python -m tests.torture.simulated --seed {seed} --seconds {seconds:g}"
            f"{' --hurried' if is_hurried else ''}"
        )
        return False
    print(
        f"seed={seed} simulated={found.passed_s:.0f} s "
        f"wall={time.monotonic() - started_s:.1f} s "
        f"cpu={time.process_time() - computed_s:.1f} s "
        f"operations={sum(found.done.values())} digest={found.digest[:16]}",
        flush=True,
    )
    return True


def survives_apart(seed: int, words: list[str]) -> bool:
    """Torture a cluster in a process of its own, on the core of this thread."""
    command = [
        sys.executable,
        "-m",
        "tests.torture.simulated",
        *words,
        f"--seed={seed}",
        "--seeds=1",
    ]
    return subprocess.run(command, check=False).returncode == 0


def stay_on(cores: Queue[int]) -> None:
    """Run this thread, and the processes it starts, on one core.

    The threads of a world take turns; between two cores each turn costs the waking of the other.
    """
    os.sched_setaffinity(0, {cores.get_nowait()})


def main(words: list[str]) -> int:
    """Torture one cluster for each seed; return the number of failed seeds."""
    parser = argparse.ArgumentParser(description="Torture three simulated brokers.")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds, one on each core")
    parser.add_argument("--seed", type=int, default=SEED, help="first seed")
    parser.add_argument(
        "--seconds", type=float, default=600, help="simulated seconds for each seed"
    )
    parser.add_argument(
        "--hurried",
        action="store_true",
        help="run short failures (milliseconds) in quick succession",
    )
    options = parser.parse_args(words)
    if options.seeds == 1:
        return int(not survives(options.seed, options.seconds, is_hurried=options.hurried))
    seeds = range(options.seed, options.seed + options.seeds)
    cores: Queue[int] = Queue()
    for core in os.sched_getaffinity(0):
        cores.put(core)
    with ThreadPoolExecutor(cores.qsize(), initializer=stay_on, initargs=(cores,)) as threads:
        survived = threads.map(partial(survives_apart, words=words), seeds)
        failed = [seed for seed, is_well in zip(seeds, survived, strict=True) if not is_well]
    print(f"{len(seeds) - len(failed)} of {len(seeds)} seeds passed; failed: {failed or 'none'}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
