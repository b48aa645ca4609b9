"""Requests about consumer groups and their offsets."""
