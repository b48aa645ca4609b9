"""The command ``python -m barnabas.spark``: run the pipelines of a file, check Spark."""
