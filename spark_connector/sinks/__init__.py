"""The exactly-once sinks: tasks write record batches, and the driver decides a batch."""
