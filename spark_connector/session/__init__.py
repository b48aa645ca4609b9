"""Spark's own processes: Java, the jars, the settings, the log, and their end."""
