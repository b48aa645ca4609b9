"""Registration of ``format("barnabas")``: Spark finds this package by its name.

Spark imports each top-level module whose name begins with ``pyspark_``, and registers its
``DefaultSource``. A module that raises there hides every Python data source.
"""

from barnabas.spark_connector.sinks.data_source import BarnabasDataSource as DefaultSource

__all__ = ["DefaultSource"]
