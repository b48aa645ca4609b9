"""Cipher suites by the names that Java and Kafka use (IANA's), with OpenSSL's names.

Suites without forward secrecy and with weak hashes are included: OpenSSL's security level decides
about them when a context is created. Suites of TLS 1.3 are a set of their own.
"""

from __future__ import annotations

from typing import Final

TLS13_SUITES: Final = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
)
"""Suites of TLS 1.3. OpenSSL serves all three, and Python before 3.15 cannot choose among them."""

_EXCHANGES: Final = {"ECDHE_ECDSA": "ECDHE-ECDSA-", "ECDHE_RSA": "ECDHE-RSA-", "RSA": ""}
_CIPHERS: Final = {
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA": "AES128-SHA",
}
_NEVER_DEFINED: Final = {
    "TLS_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA256",
}

TLS12_SUITES: Final = {
    name: f"{exchange}{cipher}"
    for exchange_name, exchange in _EXCHANGES.items()
    for cipher_name, cipher in _CIPHERS.items()
    if (name := f"TLS_{exchange_name}_WITH_{cipher_name}") not in _NEVER_DEFINED
}
"""OpenSSL's names of the suites of TLS 1.2, by IANA's."""
