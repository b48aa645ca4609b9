"""Quotas of users and clients."""
