"""Access of clients: through the proxy, plainly, or over TLS as a user with permissions."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.security.acls.operations import Operation, ResourceType
from barnabas.protocol.messages.alter_user_scram_credentials import (
    ALTER_USER_SCRAM_CREDENTIALS,
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.create_acls import AclCreation
from barnabas.protocol.sasl.scram import MECHANISMS, salted_password
from tests.broker.security.access_users import add_acls, allow
from tests.certificates import Authority
from tests.counterparts.broker_process import HOST, BrokerProcess
from tests.counterparts.logins import LOGIN_MODULES, NOBODY, Login, Tls
from tests.counterparts.probe import free_port
from tests.counterparts.wire_client import WireClient

BROKER_SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "group.initial.rebalance.delay.ms": "100",
    "group.min.session.timeout.ms": "1000",
}
USER, PASSWORD, MECHANISM = "worker", "worker-secret", "SCRAM-SHA-512"
SALT, ITERATIONS = b"0123456789abcdef", 4096


@dataclass(frozen=True)
class Access:
    """The addresses of the proxy and of the broker, and the login of clients."""

    servers: str
    """The bootstrap servers of clients."""
    proxy_port: int = 0
    broker_port: int = 0
    login: Login = NOBODY
    rights: tuple[AclCreation, ...] = ()
    loses_rights: bool = False
    """Whether permissions are removed from time to time."""

    def administer(self, broker: BrokerProcess) -> None:
        """Make the user and its rights on the broker that runs, if it takes any."""
        if not self.rights:
            return
        mechanism = MECHANISMS[MECHANISM]
        salted = salted_password(mechanism, PASSWORD, SALT, ITERATIONS)
        user = ScramCredentialUpsertion(USER, mechanism.number, ITERATIONS, SALT, salted)
        with WireClient(broker) as admin:
            request = AlterUserScramCredentialsRequest([], [user])
            (result,) = admin.ask(ALTER_USER_SCRAM_CREDENTIALS, request, 0).results
            assert not result.error_code, result
            add_acls(admin, self.rights)


def plainly(broker: BrokerProcess) -> Access:
    """Configure a broker without logins; call it before the broker's start."""
    port = free_port()
    broker.overrides = {
        **BROKER_SETTINGS,
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        **broker.overrides,
    }
    return Access(f"{HOST}:{port}", port, broker.port)


def securely(broker: BrokerProcess, *, loses_rights: bool = False) -> Access:
    """Configure one user over SASL_SSL with its permissions; call it before the broker's start.

    Who does not come through the proxy is a super user.
    """
    port = free_port()
    authority = Authority()
    broker.serve_tls(authority.issue(), "SASL_SSL")
    trusted = broker.directory / "trusted.pem"
    trusted.write_text(authority.root_pem)
    module = f"{LOGIN_MODULES}.scram.ScramLoginModule required;"
    broker.overrides = {
        **BROKER_SETTINGS,
        "advertised.listeners": f"{broker.plain_listener},SASL_SSL://{HOST}:{port}",
        "sasl.enabled.mechanisms": MECHANISM,
        f"listener.name.sasl_ssl.{MECHANISM.lower()}.sasl.jaas.config": module,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        **broker.overrides,
    }
    login = Login(MECHANISM, USER, PASSWORD, tls=Tls(str(trusted)))
    rights = (
        *allow(USER, ResourceType.TOPIC, "*", Operation.READ, Operation.WRITE),
        *allow(USER, ResourceType.GROUP, "*", Operation.READ),
        *allow(USER, ResourceType.TRANSACTIONAL_ID, "*", Operation.WRITE),
    )
    servers = f"{HOST}:{port}"
    return Access(servers, port, broker.more_ports["SASL_SSL"], login, rights, loses_rights)


ACCESSES = {
    "plain": plainly,
    "secure": securely,
    "losing-rights": lambda broker: securely(broker, loses_rights=True),
}
