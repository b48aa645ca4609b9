"""Requests about transactions and their producers."""
