"""Exactly once by the format alone: Spark finds "barnabas" by its name.

    spark-submit --jars "$(python -m barnabas.spark jars)" examples/spark_sink.py

From ``format("kafka")`` two options change: the format, and ``sinkId``. With SPARK_REMOTE, or with
``SparkSession.builder.remote(...)``, the same program runs with Spark Connect.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("payments-copy").getOrCreate()

payments = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "localhost:9092")
    .option("kafka.isolation.level", "read_committed")
    .option("subscribe", "payments")
    .option("startingOffsets", "earliest")
    .load()
)

query = (
    payments.selectExpr("key", "value")
    .writeStream.format("barnabas")  # instead of "kafka"
    .option("kafka.bootstrap.servers", "localhost:9092")
    .option("sinkId", "payments-copy")  # new: a name that no other query has
    .option("topic", "payments-copy")
    .option("checkpointLocation", "checkpoints/payments-copy")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
