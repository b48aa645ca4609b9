"""What the logins of one broker are verified by, for every mechanism of every listener."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.scram_credentials import parse_scram_credentials
from barnabas.broker.config.types import ConfigError, ConflictingValues
from barnabas.broker.security.jaas_modules import JaasModules, hidden
from barnabas.broker.security.plain_users import PlainUsers
from barnabas.broker.security.scram_users import ScramUsers
from barnabas.protocol.sasl import scram
from barnabas.protocol.sasl.plain import MECHANISM as PLAIN
from barnabas.protocol.sasl.plain import PlainServer
from barnabas.protocol.sasl.scram import ScramServer

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.config.listener_keys import ListenerConfig
    from barnabas.broker.security.login import NewExchange
    from barnabas.storage.metastore.interface import MetadataImage, MetaStore

logger = logging.getLogger("barnabas.broker.security.logins")

NONCE_BYTES: Final = 18


class Logins:
    """The users of one broker."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._modules = JaasModules(config.sasl_jaas_file)
        self.scram = ScramUsers(config.scram_iterations)

    def mechanisms_of(self, listener: ListenerConfig, name: str) -> dict[str, NewExchange]:
        """Return what begins an exchange, by the mechanisms of a listener; raises ConfigError."""
        makers: Mapping[str, Callable[[ListenerConfig, str, str], NewExchange]] = {
            PLAIN: self._plain,
            scram.SCRAM_SHA_256.name: self._scram,
            scram.SCRAM_SHA_512.name: self._scram,
        }
        mechanisms = listener.value("sasl.enabled.mechanisms")
        assert isinstance(mechanisms, tuple)
        return {each: makers[each](listener, name, each) for each in mechanisms}

    def load(self, image: MetadataImage, metastore: MetaStore) -> None:
        """Take over the stored users, make those of the configuration that are missing.

        Takes its time: passwords are hashed. Raises ConfigError where nobody could log in.
        """
        self.scram.load(image.scram_credentials)
        if any(mechanism in scram.MECHANISMS for _, mechanism in self._offered()):
            self.scram.keep_secret(metastore)
        wanted = parse_scram_credentials(self._config.scram_credentials or "")
        for user, mechanism in self.scram.create_missing(wanted, metastore):
            logger.info("user created user=%r mechanism=%s", user, mechanism)
        self._refuse_lock_out()

    def _refuse_lock_out(self) -> None:
        """Refuse listeners at which nobody could log in, and nobody could change that."""
        offered = list(self._offered())
        if not offered or any(
            mechanism not in scram.MECHANISMS or self.scram.has_users_of(mechanism)
            for _, mechanism in offered
        ):
            return
        key, (name, mechanism) = "barnabas.scram.credentials", offered[0]
        raise ConflictingValues(
            key,
            "",
            f"listener {name}: no user has a credential for {mechanism}, and there is no other way "
            f"in through which one could be added; set {key}, for example "
            f"{mechanism}=[name=admin,password=...]",
        )

    def _offered(self) -> Iterator[tuple[str, str | None]]:
        """Yield every mechanism of every listener; None for one that asks for no login."""
        for endpoint in self._config.endpoints:
            if not endpoint.security_protocol.startswith("SASL_"):
                yield endpoint.name, None
                continue
            mechanisms = self._config.for_listener(endpoint.name).value("sasl.enabled.mechanisms")
            assert isinstance(mechanisms, tuple)
            for mechanism in mechanisms:
                yield endpoint.name, mechanism

    # --------------------------------------------------------------------------------- mechanisms

    def _plain(self, listener: ListenerConfig, name: str, mechanism: str) -> NewExchange:
        module = self._modules.of(listener, name, mechanism)
        where = self._modules.where(listener, name, mechanism)
        if module is None:
            reason = f"listener {name} offers {mechanism}, so {where} must name its users"
            raise ConfigError(where, None, reason)
        users = PlainUsers(module.options)
        if not users:
            raise hidden(where, 'it names no user; write user_NAME="password"')
        return lambda: PlainServer(users.verify)

    def _scram(self, listener: ListenerConfig, name: str, mechanism: str) -> NewExchange:
        self._modules.of(listener, name, mechanism)  # Of no use, but not to be another one's.
        kind = scram.MECHANISMS[mechanism]
        find = self.scram.finder(kind)
        return lambda: ScramServer(kind, find, secrets.token_urlsafe(NONCE_BYTES))
