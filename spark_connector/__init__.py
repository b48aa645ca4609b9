"""The part of Barnabas that runs inside Spark, reached with ``pip install barnabas[spark]``.

Spark's stock Kafka source and sink work against Barnabas as they are; what they need is in
``CONNECTOR_JARS``. PySpark's wheel has none of these jars, and a plain transitive resolution of the
connector asks for artifacts that not every mirror has, so the four are named one by one.
"""

CONNECTOR_JARS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
"""Maven coordinates of the tested connector, without their own dependencies."""

TESTED_SPARK_VERSIONS = ("4.2.0", "4.3.0")
"""Versions of PySpark that were tested with ``CONNECTOR_JARS``."""
