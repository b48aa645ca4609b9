"""Requests to the brokers, repeated during an outage: metadata, producers, transactions."""
