"""`python -m tests.spark.driver DIRECTORY MASTER`: a Spark driver that runs commands.

On stdin and stdout are commands and answers in JSON, one a line: `["start", job]`, `["look",
name]`, `["stop", name]`, `["monitor", servers]`. It ends when its input does.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.spark_connector.failures.sentences import sentence_of
from barnabas.spark_connector.monitoring.monitoring import monitor
from tests.counterparts.spark import spark_session
from tests.spark.job import Job

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery


def main() -> None:
    """Start Spark, say so, and obey."""
    # What Spark's launcher prints must not come between the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    spark = spark_session(Path(sys.argv[1]), master=sys.argv[2])
    queries: dict[str, StreamingQuery] = {}
    print(json.dumps({"started": spark.version}), file=answers)
    for line in sys.stdin:
        command, argument = json.loads(line)
        if command == "start":
            job = Job.from_json(argument)
            queries[job.name] = job.start(spark)
            answer = {}
        elif command == "monitor":
            options = {"kafka.bootstrap.servers": argument}
            answer = {"url": monitor(spark, port=0, options=options).url}
        else:
            query = queries[argument]
            if command == "stop":
                # It waits for a sink that may pause somewhere.
                threading.Thread(target=query.stop, daemon=True).start()
            answer = state_of(query)
        print(json.dumps(answer), file=answers)
    spark.stop()


def state_of(query: StreamingQuery) -> dict[str, Any]:
    """Return whether the query runs, and what ended it."""
    active = query.isActive
    failure = query.exception()
    return {
        "active": active,
        "error": None if failure is None else str(failure),
        "sentence": None if failure is None else sentence_of(failure),
    }


if __name__ == "__main__":
    main()
