"""Tests of clusters with client libraries, which need the machine."""
