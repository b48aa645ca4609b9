"""A query of Spark with a value for each metric."""

from __future__ import annotations

from barnabas.spark_connector.monitoring.query_metrics import QueryMetrics

KNOWN_QUERY = QueryMetrics("id", "payments", "ledger", transaction_age_ms=1500, lag=42)
