"""Write one invoice for each order, exactly once, with Spark.

barnabas prove --input orders --output invoices --spark examples/proving/with_spark.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.spark import Pipeline, Sink, Source, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def invoices(orders: DataFrame) -> DataFrame:
    """Return one row for each order."""
    return orders.select("key", "value")


pipeline = Pipeline(
    source=Source(topic="orders"),
    transform=invoices,
    sink=Sink(sink_id="invoicing", topic="invoices"),
)

if __name__ == "__main__":
    run(pipeline)
