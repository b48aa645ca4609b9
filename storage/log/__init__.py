"""The log of one partition: rules of appends, producers, segments, indexes."""
