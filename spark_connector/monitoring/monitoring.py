"""Metrics of the exactly-once queries of a session: `barnabas.spark.monitor(spark)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.spark_connector.refusals import WrongUse
from barnabas.spark_connector.settings.options import SERVERS, SinkOptions
from barnabas.spark_connector.settings.servers import servers_or_default

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.spark_connector.monitoring.progress import BatchProgress
    from barnabas.spark_connector.monitoring.query_monitor import Monitor

PORT: Final = 9108
HOST: Final = "127.0.0.1"


def monitor(
    spark: SparkSession,
    *,
    port: int | None = PORT,
    host: str = HOST,
    options: Mapping[str, str] | None = None,
    on_batch: Callable[[BatchProgress], object] | None = None,
) -> Monitor:
    """Start to follow the queries of a session, and serve their metrics for Prometheus.

    ``port`` 0 is any free port, None is none. ``options`` are those of `writeStream` for queries
    of `format("barnabas")`: the brokers, how to get in, `ledgerTopic`, `sourceServers`; by default
    the brokers are those of `BARNABAS_SERVERS`, or localhost:9092. The sinks for `foreachBatch` say
    themselves where they write. ``on_batch`` is called with each batch, in the monitor's thread.
    Queries of other sessions (`spark.newSession()`) need a monitor of their own. Raises WrongOption
    if an option is wrong or the port is in use.
    """
    if not hasattr(spark, "streams"):
        raise WrongUse(f"monitor() received {type(spark).__name__}, not a SparkSession")
    # Tasks import the package, too, and need no monitor.
    from barnabas.spark_connector.monitoring.query_monitor import Monitor

    elsewhere = {SERVERS: servers_or_default(None), "sinkId": "monitor", **(options or {})}
    found = Monitor(SinkOptions.parse(elsewhere), on_batch)
    try:
        if port is not None:
            found.serve(host, port)
        found.follow(spark)
    except BaseException:
        found.close()
        raise
    return found
