"""Connections between the brokers of a cluster: requests, current connections, ended ones."""
