"""Verification of what is on the disk, and repair of what is damaged."""
