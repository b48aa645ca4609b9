"""`python -m tests.interop.demo`: a million records through Spark while the broker is killed."""

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path

from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.errors import MissingCounterpart
from tests.counterparts.spark import spark_session


def main() -> int:
    """Run the job of the interop tests in full size; exit 0 when every result is right."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop.demo", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    arguments = parser.parse_args()
    # The client libraries' own warnings are not part of the show.
    warnings.simplefilter("ignore")
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:6.1f} s  {text}", flush=True)

    with tempfile.TemporaryDirectory() as scratch:
        try:
            spark = spark_session(Path(scratch))
        except MissingCounterpart as error:
            print(f"demo: {error}", file=sys.stderr)
            return 1
        from tests.interop.spark_job import Job

        say(f"Spark {spark.version} started")
        with BarnabasProcess() as broker:
            say(f"Barnabas started on {broker.bootstrap_servers} in {broker.start_up_s:.2f} s")
            outcome = Job(spark, broker, Path(scratch), arguments.records).run(say)
        spark.stop()
    say(f"input: {outcome.records:,} sent, {outcome.counted:,} found by a batch read")
    say(f"keys with a wrong last result: {len(outcome.wrong_keys)}")
    say(f"results: {outcome.results:,}, written again by the sink: {outcome.duplicates:,}")
    right = outcome.counted == outcome.records and not outcome.wrong_keys
    say("all right" if right else "WRONG")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
