"""Reasons of failed connections: errors of sockets, TLS and authentication in one line.

Errors that another attempt cannot correct become NotLetIn, with the setting to change; all others
are Unreachable.
"""

from __future__ import annotations

from enum import IntEnum, auto
from typing import TYPE_CHECKING, Final

from barnabas.broker.client.access import Access
from barnabas.broker.client.errors import (
    NotKafka,
    NotLetIn,
    TlsIsSpoken,
    TokenUnavailable,
    Unreachable,
    WrongSetting,
    is_end_of_tls,
    printable,
)
from barnabas.broker.config.addresses import address_text
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.sasl.login_client import LoginRefused

if TYPE_CHECKING:
    import ssl

_END_OF_FILE: Final = "connection closed during the TLS handshake"


class Stage(IntEnum):
    """Progress of a connection, which decides the meaning of an error."""

    CONNECTING = auto()
    """Connection and handshake of TLS."""
    INTRODUCING = auto()
    """ApiVersions, and the login."""
    NEW = auto()
    """Connected, without any response so far."""
    IN_USE = auto()


def problem_of(
    error: Exception, address: tuple[str, int], access: Access, stage: Stage
) -> Unreachable:
    """Return the exception for an error of a connection; its text names the broker."""
    found = reason_of(error, address[0], access, stage)
    return type(found)(f"{address_text(*address)}: {found}")


def reason_of(error: Exception, host: str, access: Access, stage: Stage) -> Unreachable:
    """Return the same without the broker's address."""
    if isinstance(error, LoginRefused):
        assert access.credential is not None
        return NotLetIn(f"login by {access.credential.description}: {printable(str(error))}")
    if isinstance(error, WrongSetting):
        return NotLetIn(str(error))
    if isinstance(error, TokenUnavailable):
        return Unreachable(str(error))
    if isinstance(error, TlsIsSpoken):
        # An alert does not say whether the listener has a login.
        wanted = "SASL_SSL" if access.credential is not None else "SSL, or SASL_SSL with a login"
        return NotLetIn(f"the listener expects TLS: set security.protocol={wanted}")
    if isinstance(error, KafkaError):
        return NotKafka(str(error))
    if not isinstance(error, OSError):
        return NotKafka(f"the answer is not Kafka's ({error})")
    if access.context is not None and stage <= Stage.INTRODUCING:
        import ssl

        if isinstance(error, ssl.SSLCertVerificationError):
            return NotLetIn(_distrust(error, host))
        if isinstance(error, ssl.SSLError) and not is_end_of_tls(error):
            return NotLetIn(_refused_handshake(error))
    text = _END_OF_FILE if is_end_of_tls(error) else error.strerror or str(error)
    hint = _hint(access, stage) if _is_closed(error) else None
    return Unreachable(f"{text}; {hint}" if hint else text)


def _is_closed(error: OSError) -> bool:
    """Return whether the broker accepted the connection and closed it."""
    is_reset = isinstance(error, ConnectionError) and not isinstance(error, ConnectionRefusedError)
    return is_reset or is_end_of_tls(error)


def _hint(access: Access, stage: Stage) -> str | None:
    """Return a possible reason for a connection that the broker closed without an error."""
    has_tls, has_login = access.context is not None, access.credential is not None
    if stage is Stage.CONNECTING:
        return "is TLS spoken here (security.protocol)?" if has_tls else None
    if stage is Stage.INTRODUCING:
        wanted = "a client certificate (ssl.keystore.*)" if has_tls else "TLS (security.protocol)"
        return f"does this listener want {wanted}?"
    if stage is Stage.NEW and not has_login:
        return "does this listener want a login (security.protocol)?"
    return None


# ---------------------------------------------------------------------------------------------- TLS

_OTHER_HOST: Final = {62, 64}
_NO_AUTHORITY: Final = {2, 18, 19, 20, 21}
_TIMES: Final = {9: "is not valid yet", 10: "has expired"}
"""OpenSSL's numbers of certificate errors (X509_V_ERR_*)."""

_CERTIFICATE: Final = "a client certificate (ssl.keystore.*)"
_ALERTS: Final = {
    "CERTIFICATE_REQUIRED": f"the broker wants {_CERTIFICATE}",
    "UNKNOWN_CA": "the broker does not know who has signed this client's certificate",
    "CERTIFICATE_EXPIRED": "this client's certificate has expired",
    "CERTIFICATE_REVOKED": "this client's certificate is revoked",
    "BAD_CERTIFICATE": f"the broker wants another client certificate, or {_CERTIFICATE} at all",
    "CERTIFICATE_UNKNOWN": "the broker does not trust this client's certificate",
    "HANDSHAKE_FAILURE": "the broker ends the TLS handshake: there is no cipher suite that both"
    f" have (ssl.cipher.suites), or it wants {_CERTIFICATE}",
    "PROTOCOL_VERSION": "there is no version of TLS that both have (ssl.enabled.protocols)",
}
"""Messages for alerts of the broker, by the end of OpenSSL's name."""
_REASONS: Final = {
    "WRONG_VERSION_NUMBER": "the listener does not use TLS: check security.protocol",
    "UNSUPPORTED_PROTOCOL": _ALERTS["PROTOCOL_VERSION"],
    "NO_PROTOCOLS_AVAILABLE": _ALERTS["PROTOCOL_VERSION"],
}


def _distrust(error: ssl.SSLCertVerificationError, host: str) -> str:
    code = error.verify_code
    if code in _OTHER_HOST:
        return (
            f"the broker's certificate is not for {host}: connect to a name that is in it"
            " (ssl.endpoint.identification.algorithm, set to nothing, lets any name pass)"
        )
    if code in _TIMES:
        return f"the broker's certificate {_TIMES[code]}"
    if code in _NO_AUTHORITY:
        return (
            "the broker's certificate is not signed by a trusted authority:"
            " ssl.truststore.location names the trusted ones"
        )
    return f"the broker's certificate cannot be trusted: {error.verify_message}"


def _refused_handshake(error: ssl.SSLError) -> str:
    reason = error.reason or str(error)
    alert = reason.partition("_ALERT_")[2]
    known = _ALERTS.get(alert) or _REASONS.get(reason)
    return known or f"the TLS handshake failed: {reason.lower().replace('_', ' ')}"
