"""Settings of a token server, as Apache Kafka 4.3.0's clients read them.

Client id, secret and scope have settings of their own or, in older configurations, options of the
JAAS line; the settings take precedence. ``ssl.*`` options of the JAAS line are for TLS with that
server. librdkafka's names are accepted, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeVar
from urllib.parse import urlsplit

from barnabas.broker.client.errors import WrongSetting
from barnabas.broker.client.security_keys import (
    CLIENT_ID,
    CLIENT_SECRET,
    CONNECT_TIMEOUT,
    EXTENSIONS,
    GRANT,
    HTTPS_TRUST,
    JAAS,
    LIBRDKAFKA_CLIENT_ID,
    LIBRDKAFKA_CLIENT_SECRET,
    READ_TIMEOUT,
    REFRESH_BUFFER,
    REFRESH_FACTOR,
    REFRESH_JITTER,
    REFRESH_PERIOD_MIN,
    RETRY_BACKOFF,
    RETRY_BACKOFF_MAX,
    SCOPE,
    TOKEN_URL,
    URLENCODE,
)
from barnabas.broker.client.token_endpoint import Refresh, TokenEndpoint
from barnabas.broker.security.tls.client import CLIENT_KEYS, LIBRDKAFKA, VERIFICATION

Number = TypeVar("Number", int, float)

_URL: Final = re.compile(r"(?i:https?)://[!-~]+")
_GRANT: Final = "client_credentials"
_OPTIONS: Final = {CLIENT_ID: "clientId", CLIENT_SECRET: "clientSecret", SCOPE: "scope"}
"""Names of the token settings in the JAAS line of older configurations."""
_IN_LIBRDKAFKA: Final = {CLIENT_ID: LIBRDKAFKA_CLIENT_ID, CLIENT_SECRET: LIBRDKAFKA_CLIENT_SECRET}
_EXTENSION: Final = "extension_"
_TLS_OPTIONS: Final = CLIENT_KEYS - {*LIBRDKAFKA, VERIFICATION}
_MS_MAX: Final = 2**31 - 1


def check_options(options: Mapping[str, str]) -> None:
    """Refuse unsupported options of a JAAS line; raises WrongSetting."""
    for name in options:
        if name not in {*_OPTIONS.values(), *_TLS_OPTIONS} and not name.startswith(_EXTENSION):
            known = ", ".join(_OPTIONS.values())
            reason = f"the option {name} is not available; there are {known}, {_EXTENSION}*, ssl.*"
            raise WrongSetting(JAAS, reason)


def extensions_of(
    settings: Mapping[str, str], options: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Return the SASL extensions that accompany a token (KIP-342); raises WrongSetting."""
    found = {
        name.removeprefix(_EXTENSION): value
        for name, value in options.items()
        if name.startswith(_EXTENSION)
    }
    for each in filter(None, settings.get(EXTENSIONS, "").split(",")):
        name, equals, value = each.partition("=")
        if not equals:
            raise WrongSetting(EXTENSIONS, "must be NAME=VALUE,NAME=VALUE")
        found[name.strip()] = value.strip()
    return tuple(found.items())


def endpoint_of(settings: Mapping[str, str], options: Mapping[str, str]) -> TokenEndpoint:
    """Return the token server of the settings; raises WrongSetting.

    ``options`` are those of the JAAS line.
    """
    url = settings[TOKEN_URL]
    if not _is_url(url):
        reason = "it must be a URL with https:, http: or file:, without a user in it"
        raise WrongSetting(TOKEN_URL, reason)
    grant = settings.get(GRANT) or _GRANT
    if grant.lower() != _GRANT:
        raise WrongSetting(GRANT, f"{grant} is not available; there is {_GRANT}")
    return TokenEndpoint(
        url,
        _needed(CLIENT_ID, settings, options),
        _needed(CLIENT_SECRET, settings, options),
        _value(SCOPE, settings, options),
        is_urlencoded=_is_true(URLENCODE, settings),
        tls=_tls(settings, options),
        connect_timeout_ms=_optional_ms(CONNECT_TIMEOUT, settings),
        read_timeout_ms=_optional_ms(READ_TIMEOUT, settings),
        retry_backoff_ms=_number(RETRY_BACKOFF, settings, 100, int, 0, _MS_MAX),
        retry_backoff_max_ms=_number(RETRY_BACKOFF_MAX, settings, 10_000, int, 0, _MS_MAX),
        refresh=Refresh(
            window_factor=_number(REFRESH_FACTOR, settings, 0.8, float, 0.5, 1.0),
            window_jitter=_number(REFRESH_JITTER, settings, 0.05, float, 0.0, 0.25),
            period_min_seconds=_number(REFRESH_PERIOD_MIN, settings, 60, int, 0, 900),
            buffer_seconds=_number(REFRESH_BUFFER, settings, 300, int, 0, 3600),
        ),
    )


def _is_url(text: str) -> bool:
    if not _URL.fullmatch(text):
        return False
    try:
        parts = urlsplit(text)
        return bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        return False


def _needed(key: str, settings: Mapping[str, str], options: Mapping[str, str]) -> str:
    value = _value(key, settings, options)
    if not value:
        reason = f"it is not set, and {TOKEN_URL} is a server's; or {JAAS} has {_OPTIONS[key]}="
        raise WrongSetting(key, reason)
    return value


def _value(key: str, settings: Mapping[str, str], options: Mapping[str, str]) -> str:
    other = _IN_LIBRDKAFKA.get(key, "")
    if settings.get(key) and settings.get(other):
        raise WrongSetting(other, f"{key} says the same")
    value = settings.get(key) or settings.get(other) or options.get(_OPTIONS[key], "")
    return value.strip()


def _tls(settings: Mapping[str, str], options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the settings of TLS to the token server, from the JAAS line and from librdkafka's
    keys.
    """
    found = {name: value for name, value in options.items() if name in _TLS_OPTIONS}
    for key, same in HTTPS_TRUST.items():
        if settings.get(key):
            found[same] = settings[key]
    return tuple(sorted(found.items()))


def _is_true(key: str, settings: Mapping[str, str]) -> bool:
    value = settings.get(key, "").lower()
    if value not in {"true", "false", ""}:
        raise WrongSetting(key, "must be true or false")
    return value == "true"


def _optional_ms(key: str, settings: Mapping[str, str]) -> int | None:
    """Return a time, or None if it is not set: then the connection's limit applies."""
    return _number(key, settings, 1, int, 1, _MS_MAX) if settings.get(key) else None


def _number(
    key: str,
    settings: Mapping[str, str],
    default: Number,
    kind: Callable[[str], Number],
    lowest: Number,
    highest: Number,
) -> Number:
    text = settings.get(key)
    if not text:
        return default
    try:
        value = kind(text)
    except ValueError:
        raise WrongSetting(key, f"{text} is no number") from None
    if not lowest <= value <= highest:
        raise WrongSetting(key, f"{text} is not between {lowest} and {highest}")
    return value
