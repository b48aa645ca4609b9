"""The console beside client libraries of others: groups with members, isolation, processor time."""
