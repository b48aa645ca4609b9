"""Progress and metrics of queries, for the lines of the command and for Prometheus."""
