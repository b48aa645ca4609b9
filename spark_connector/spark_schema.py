"""A DataFrame's columns, checked on the driver before any task is launched."""

from __future__ import annotations

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from barnabas.spark_connector.columns import NAMES, check_columns


def check_frame(schema: StructType, topic: str | None) -> None:
    """Refuse columns that cannot become records; the others may be of any type."""
    known = StructType([field for field in schema.fields if field.name in NAMES])
    check_columns(to_arrow_schema(known, timezone="UTC"), topic)
