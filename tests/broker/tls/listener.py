"""A listener with TLS, without a broker."""

from __future__ import annotations

import ssl
from functools import cache

from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.security.acls.access import OPEN
from barnabas.broker.security.listeners.certificate_names import CertificateNames
from barnabas.broker.security.listeners.listeners import ListenerSecurity
from barnabas.broker.security.listeners.tls import ListenerTls
from barnabas.broker.security.tls.server import ServerSettings
from barnabas.broker.security.tls.stores import KeyStoreSettings, TrustStoreSettings
from tests.broker.tls.handshakes import anyone
from tests.broker.toy import ToyTls
from tests.certificates import Authority, Credential

AUTHORITY = Authority()


@cache
def broker_credential() -> Credential:
    return AUTHORITY.issue("CN=localhost,O=Barn")


def listener_tls(*, client_auth: str = "none", rules: str = "DEFAULT", credential=None):
    own = credential or broker_credential()
    settings = ServerSettings(
        key_store=KeyStoreSettings(type="PEM", key=own.key_pem(), certificate_chain=own.chain_pem),
        trust_store=TrustStoreSettings(type="PEM", certificates=AUTHORITY.root_pem),
        client_auth=client_auth,
    )
    endpoint = Endpoint("SECURE", "127.0.0.1", 0, "SSL", None)
    return ListenerTls(endpoint, settings, CertificateNames(rules))


def toy_tls(**options) -> ToyTls:
    security = ListenerSecurity(
        mechanisms={},
        max_receive_bytes=0,
        new_access=lambda _who, _host: OPEN,
        tls=listener_tls(**options),
    )
    return ToyTls(security, trusting_context())


def trusting_context() -> ssl.SSLContext:
    context = anyone(verify_mode=ssl.CERT_REQUIRED)
    context.load_verify_locations(cadata=AUTHORITY.root_pem)
    return context
