"""Unit tests of ``barnabas prove``: schedules, ids, the judge, its report."""
