"""The sinks for ``df.writeStream.foreachBatch(...)``; need PySpark, see docs/spark.md."""

from barnabas.spark_connector.sinks.foreach_batch import single_transaction, two_phase

__all__ = ["single_transaction", "two_phase"]
