"""Kafka's four security protocols: with or without TLS, with or without authentication."""

from __future__ import annotations

from typing import Final

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def has_tls(protocol: str) -> bool:
    """Whether connections are encrypted."""
    return protocol in {"SSL", "SASL_SSL"}


def has_login(protocol: str) -> bool:
    """Whether clients log in, by SASL."""
    return protocol in {"SASL_PLAINTEXT", "SASL_SSL"}
