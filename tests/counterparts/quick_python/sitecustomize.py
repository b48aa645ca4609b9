"""What every Python of a Spark of the tests begins with: PySpark is imported from where pip put it.

Spark puts its pyspark.zip in front of that. It has the same files and none of them compiled, and
Python keeps nothing of what it compiles out of an archive: half a second of processor time in each
daemon, of which a query with a data source has one for each thing that Spark asks it.
"""

import sys

sys.path[:] = [each for each in sys.path if "/pyspark/python/lib/" not in each]
