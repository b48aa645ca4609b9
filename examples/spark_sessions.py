"""Sessions of a website's visitors: clicks of one user with less than half an hour in between.

    python -m examples.spark_data clicks --count 100000
    python -m barnabas.spark run examples/spark_sessions.py --once

Spark keeps the sessions that are still open in its state, and writes one record for each session
after its end. After a crash, state and output continue with the same batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.spark import Pipeline, Sink, Source, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

JUDGE = "proving/sessions_judge.py"  # of `barnabas prove --spark examples/spark_sessions.py`
CLICK = "user string, page string, second long"


def sessions(clicks: DataFrame) -> DataFrame:
    """Return one row for each session that has ended."""
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

    return (
        clicks.selectExpr(f"from_json(cast(value as string), '{CLICK}') as click")
        .selectExpr("click.user", "click.page", "timestamp_seconds(click.second) as at")
        .withWatermark("at", "1 hour")
        .groupBy("user", F.session_window("at", "30 minutes").alias("session"))
        .agg(F.count("*").alias("clicks"), F.approx_count_distinct("page").alias("pages"))
        .selectExpr(
            "user as key",
            "to_json(struct(user, unix_seconds(session.start) as began,"
            " unix_seconds(session.end) as ended, clicks, pages)) as value",
        )
    )


pipeline = Pipeline(
    source=Source(topic="clicks", options={"maxOffsetsPerTrigger": 200_000}),
    transform=sessions,
    sink=Sink(sink_id="sessions", topic="sessions"),
)

if __name__ == "__main__":
    run(pipeline)
