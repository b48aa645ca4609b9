"""The benchmark of clusters: three brokers of each kind side by side (`make bench-cluster`)."""
