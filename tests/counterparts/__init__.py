"""Real counterparts for the tests: Apache Kafka, Spark, kcat, PostgreSQL, Barnabas as a process.

Nothing here is skipped when it is missing: what cannot be found is installed, and what cannot be
installed raises `MissingCounterpart` with the command that would help.
"""
