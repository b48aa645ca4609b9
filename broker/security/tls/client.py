"""TLS of clients: ``client_context`` accepts Kafka's client keys, Java's and librdkafka's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.tls.contexts import (
    CIPHER_SUITES,
    ENABLED_PROTOCOLS,
    PROTOCOLS,
    new_context,
    use_key,
    use_trust,
)
from barnabas.broker.security.tls.errors import TlsError
from barnabas.broker.security.tls.stores import (
    CHAIN,
    KEY,
    KEY_PASSWORD,
    KEY_STORE,
    KEY_STORE_PASSWORD,
    STORE_TYPES,
    TRUST_STORE,
    TRUST_STORE_PASSWORD,
    TRUSTED,
    KeyStoreSettings,
    TrustStoreSettings,
    load_key_store,
    load_trust_store,
    read_file,
)

if TYPE_CHECKING:
    import ssl

IDENTIFICATION: Final = "ssl.endpoint.identification.algorithm"
VERIFICATION: Final = "enable.ssl.certificate.verification"

_JAVA: Final = (
    *("ssl.keystore.type", KEY_STORE, KEY_STORE_PASSWORD, KEY, CHAIN, KEY_PASSWORD),
    *("ssl.truststore.type", TRUST_STORE, TRUST_STORE_PASSWORD, TRUSTED),
    *(CIPHER_SUITES, ENABLED_PROTOCOLS, "ssl.protocol", IDENTIFICATION),
)
LIBRDKAFKA: Final = {
    "ssl.ca.location": TRUST_STORE,
    "ssl.ca.pem": TRUSTED,
    "ssl.certificate.location": CHAIN,
    "ssl.certificate.pem": CHAIN,
    "ssl.key.location": KEY,
    "ssl.key.pem": KEY,
}
"""Java's key for each key that only librdkafka spells so."""
_OF_A_JVM: Final = (
    "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm",
    "ssl.provider",
    "ssl.secure.random.implementation",
)
"""Keys without an effect here."""

CLIENT_KEYS: Final = frozenset((*_JAVA, *LIBRDKAFKA, *_OF_A_JVM, VERIFICATION))
"""Every key that ``client_context`` accepts."""


def client_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context of a client; raises TlsError, which never shows a secret.

    ``settings`` are those of ``CLIENT_KEYS`` that are set; others are refused. Without a trust
    store the system's is used. Names of hosts are checked (``server_hostname`` of ``wrap_socket``)
    unless ``ssl.endpoint.identification.algorithm`` is empty or none.
    """
    import ssl

    given = _in_java_spelling({key: value for key, value in settings.items() if value})
    context = new_context(_protocols(given), _items(given.get(CIPHER_SUITES)), is_server=False)
    context.check_hostname = _checks_names(settings)
    if _is_false(settings, VERIFICATION):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    try:
        _use_stores(context, given, settings)
    except TlsError as error:
        raise TlsError(_spelled(error.key, settings), error.reason) from None
    return context


def _use_stores(
    context: ssl.SSLContext, given: Mapping[str, str], settings: Mapping[str, str]
) -> None:
    material = load_key_store(
        KeyStoreSettings(
            type=_store_type("ssl.keystore.type", given),
            location=given.get(KEY_STORE),
            password=given.get(KEY_STORE_PASSWORD),
            key_password=given.get(KEY_PASSWORD),
            key=given.get(KEY),
            certificate_chain=given.get(CHAIN),
        )
    )
    if material is not None:
        use_key(context, material)
    directory = settings.get("ssl.ca.location") or ""
    if os.path.isdir(directory):
        context.load_verify_locations(capath=directory)
        return
    trusted = load_trust_store(
        TrustStoreSettings(
            type=_store_type("ssl.truststore.type", given),
            location=given.get(TRUST_STORE),
            password=given.get(TRUST_STORE_PASSWORD),
            certificates=given.get(TRUSTED),
        )
    )
    import ssl

    # Loading the system's authorities takes time, and is useless without verification.
    if trusted is not None or context.verify_mode is not ssl.CERT_NONE:
        use_trust(context, trusted)


def _in_java_spelling(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the same settings by Java's names, with the content of librdkafka's files."""
    unknown = sorted(settings.keys() - CLIENT_KEYS)
    if unknown:
        raise TlsError(unknown[0], f"unknown; these are known: {', '.join(sorted(CLIENT_KEYS))}")
    given = {key: value for key, value in settings.items() if key in _JAVA}
    for key, java_key in LIBRDKAFKA.items():
        value = settings.get(key)
        if not value or (key == "ssl.ca.location" and value == "probe"):
            continue
        if java_key in given:
            raise TlsError(key, f"{_spelled(java_key, settings)} says the same")
        if java_key in {KEY, CHAIN}:
            given[java_key] = (
                value if key.endswith(".pem") else read_file(key, value).decode("utf-8", "replace")
            )
            given["ssl.keystore.type"] = "PEM"
        else:
            given[java_key] = value
            given["ssl.truststore.type"] = "PEM"
    return given


def _spelled(java_key: str, settings: Mapping[str, str]) -> str:
    """Return the key under which a setting was given."""
    if settings.get(java_key):
        return java_key
    others = (key for key, same in LIBRDKAFKA.items() if same == java_key and settings.get(key))
    return next(others, java_key)


def _store_type(key: str, given: Mapping[str, str]) -> str:
    kind = given.get(key, "JKS").upper()
    if kind not in STORE_TYPES:
        raise TlsError(key, f"{kind} is none of {', '.join(STORE_TYPES)}")
    return kind


def _protocols(given: Mapping[str, str]) -> tuple[str, ...]:
    chosen = _items(given.get(ENABLED_PROTOCOLS)) or PROTOCOLS
    for each in chosen:
        if each not in PROTOCOLS:
            raise TlsError(ENABLED_PROTOCOLS, f"{each} is none of {', '.join(PROTOCOLS)}")
    return chosen


def _items(text: str | None) -> tuple[str, ...]:
    return tuple(item.strip() for item in (text or "").split(",") if item.strip())


def _checks_names(settings: Mapping[str, str]) -> bool:
    algorithm = settings.get(IDENTIFICATION, "https").lower()
    if algorithm not in {"https", "none", ""}:
        raise TlsError(IDENTIFICATION, f"{algorithm} is none of https, none")
    return algorithm == "https"


def _is_false(settings: Mapping[str, str], key: str) -> bool:
    value = settings.get(key, "true").lower()
    if value not in {"true", "false", ""}:
        raise TlsError(key, "must be true or false")
    return value == "false"
