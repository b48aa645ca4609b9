"""Check of a DataFrame's columns on the driver, before any task starts."""

from __future__ import annotations

from inspect import signature
from typing import Any, Final

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from barnabas.spark_connector.rows.columns import NAMES, check_columns

# PySpark 4.1 has no such parameter: timestamps are in UTC there.
_IN_UTC: Final[dict[str, Any]] = (
    {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
)


def check_frame(schema: StructType, topic: str | None) -> None:
    """Refuse columns that cannot be written as records; others can have any type."""
    known = StructType([field for field in schema.fields if field.name in NAMES])
    check_columns(to_arrow_schema(known, **_IN_UTC), topic)
