"""Make the archives of classes: run what the tests run while Java takes notes."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.counterparts.apache_kafka import QUICK_START, ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.class_archive import SERVER, SPARK, TOOLS, make_archive
from tests.counterparts.kafka_tools import CONSOLE_PRODUCER, TOPICS, run_tool, run_tool_alone
from tests.counterparts.spark import quick_start, spark_session
from tests.spark.job import EXACT_SINKS, STOCK, Job
from tests.spark.judge import feed

SPARK_TIMEOUT_S = 120
NUMBERS = 100


def make_archives() -> dict[str, bool]:
    """Create the missing archives; return for each name whether its archive exists."""
    return {name: make_archive(name, run) for name, run in RECORDED.items()}


class _Recorded(ApacheKafka):
    """A server that writes down at its end what it has loaded."""

    options: Sequence[str] = ()

    def start_options(self) -> Sequence[str]:
        return [*QUICK_START, *self.options]


def _run_server(options: list[str]) -> None:
    _Recorded.options = options
    with _Recorded() as server:
        where = ["--bootstrap-server", server.bootstrap_servers]
        run_tool(CONSOLE_PRODUCER, *where, "--topic", "recorded", stdin="one\n")
        server.terminate()


def _run_tool(options: list[str]) -> None:
    with BarnabasProcess() as broker:
        where = ["--bootstrap-server", broker.bootstrap_servers]
        run_tool_alone(TOPICS, *where, "--describe", jvm_options=options, timeout_s=120)


def _run_spark(options: list[str]) -> None:
    """Send numbers through each of the sinks, and count."""
    settings = {"transaction.two.phase.commit.enable": "true"}
    with tempfile.TemporaryDirectory() as directory, BarnabasProcess(**settings) as broker:
        spark = spark_session(Path(directory), more=quick_start(options))
        for sink in (STOCK, *EXACT_SINKS):
            job = Job(broker.bootstrap_servers, sink, f"recorded-{sink}", f"{directory}/{sink}")
            feed(job, range(NUMBERS))
            job.start(spark).awaitTermination(SPARK_TIMEOUT_S)
        numbers = spark.readStream.format("rate").load().groupBy("value").count()
        writer = numbers.writeStream.foreachBatch(lambda frame, _: frame.collect())
        writer = writer.option("checkpointLocation", f"{directory}/checkpoint")
        writer.outputMode("update").trigger(availableNow=True).start().awaitTermination(
            SPARK_TIMEOUT_S
        )
        gateway = spark.sparkContext._gateway
        spark.stop()
        # It ends, and writes, when its last connection is closed.
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(SPARK_TIMEOUT_S)


RECORDED = {SERVER: _run_server, TOOLS: _run_tool, SPARK: _run_spark}
