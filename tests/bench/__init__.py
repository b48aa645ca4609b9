"""The benchmark: Barnabas and Apache Kafka side by side on the same bytes (`make bench`)."""
