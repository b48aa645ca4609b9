"""Client authentication by certificate of a listener, for the listener and for health checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.broker.config.listener_keys import ListenerConfig

CLIENT_AUTH: Final = "ssl.client.auth"


def client_auth_of(listener: ListenerConfig, *, is_login: bool) -> str:
    """Return the client authentication of a listener with TLS: none, requested or required.

    If clients log in, only a setting for this listener counts, as in Apache Kafka.
    """
    if is_login and listener.name_of(CLIENT_AUTH) is None:
        return "none"
    value = listener.value(CLIENT_AUTH)
    assert isinstance(value, str)
    return value
