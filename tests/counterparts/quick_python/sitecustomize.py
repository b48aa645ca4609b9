"""Startup code of every Python that Spark starts in tests: import PySpark from where pip put it.

Spark puts its pyspark.zip before that path. The archive has the same files, none of them compiled,
and Python does not keep the code that it compiles from an archive. That costs each daemon half a
second of processor time, and a query with a data source has one daemon for each call of Spark.
"""

import sys

sys.path[:] = [each for each in sys.path if "/pyspark/python/lib/" not in each]
