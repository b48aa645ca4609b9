"""The part of Barnabas that runs inside Spark."""
