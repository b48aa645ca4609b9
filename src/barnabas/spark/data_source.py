"""The sink ``df.writeStream.format("barnabas")``; needs PySpark beside it, see docs/spark.md."""

from barnabas.spark_connector.sinks.data_source import BarnabasDataSource

__all__ = ["BarnabasDataSource"]
