"""Coordinators on other brokers: requests, markers, verification."""
