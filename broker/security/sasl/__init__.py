"""Logins by SASL: users, passwords, tokens."""
