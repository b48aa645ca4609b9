"""Verifiers of one broker's logins, for every mechanism of every listener."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.scram_credentials import parse_scram_credentials
from barnabas.broker.config.types import ConfigError, ConflictingValues
from barnabas.broker.runtime.clock import SystemClock
from barnabas.broker.security.sasl.jaas_modules import JaasModules, hidden
from barnabas.broker.security.sasl.passwords import Passwords
from barnabas.broker.security.sasl.plain_users import PlainUsers
from barnabas.broker.security.sasl.scram_users import ScramUsers
from barnabas.protocol.sasl import scram
from barnabas.protocol.sasl.oauthbearer import MECHANISM as OAUTHBEARER
from barnabas.protocol.sasl.plain import MECHANISM as PLAIN
from barnabas.protocol.sasl.plain import PlainServer
from barnabas.protocol.sasl.scram import ScramServer
from barnabas.storage.runtime.chance import random_text

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.config.listener_keys import ListenerConfig
    from barnabas.broker.runtime.clock import Clock
    from barnabas.broker.security.sasl.login import NewExchange
    from barnabas.broker.security.sasl.token_logins import TokenLogins
    from barnabas.protocol.sasl.scram import ScramMechanism
    from barnabas.storage.metastore.interface import MetadataImage, MetaStore

logger = logging.getLogger("barnabas.broker.security.sasl.logins")

NONCE_BYTES: Final = 18
UNSECURED_RULES: Final = "unsecuredValidator"
"""Prefix of options that would allow tokens without a signature."""


class Logins:
    """Users of one broker."""

    def __init__(self, config: BrokerConfig, clock: Clock | None = None) -> None:
        self._config = config
        self._clock: Clock = clock or SystemClock()
        self._modules = JaasModules(config.sasl_jaas_file)
        self.scram = ScramUsers(config.scram_iterations)
        self._tokens: TokenLogins | None = None
        self._plain_users: list[PlainUsers] = []
        self._offered_scram: dict[str, ScramMechanism] = {}
        self._passwords: list[Passwords] = []
        """Objects that ``close`` closes."""

    def mechanisms_of(self, listener: ListenerConfig, name: str) -> dict[str, NewExchange]:
        """Return functions that start an exchange, by mechanism; raises ConfigError."""
        makers: Mapping[str, Callable[[ListenerConfig, str, str], NewExchange]] = {
            PLAIN: self._plain,
            scram.SCRAM_SHA_256.name: self._scram,
            scram.SCRAM_SHA_512.name: self._scram,
            OAUTHBEARER: self._oauthbearer,
        }
        mechanisms = listener.value("sasl.enabled.mechanisms")
        assert isinstance(mechanisms, tuple)
        return {each: makers[each](listener, name, each) for each in mechanisms}

    def passwords(self) -> Passwords:
        """Return the verifier of all listeners' passwords; call it after ``mechanisms_of``."""
        offered = self._offered_scram.values()
        finders = [(each, self.scram.finder(each)) for each in offered]
        self._passwords.append(Passwords(self._plain_users, finders))
        return self._passwords[-1]

    def load(self, image: MetadataImage, metastore: MetaStore) -> None:
        """Load the stored users, and create the configured ones that are missing.

        Hashing of passwords takes time. Raises ConfigError if no user could log in.
        """
        self.scram.load(image.scram_credentials)
        if any(mechanism in scram.MECHANISMS for _, mechanism in self._offered()):
            self.scram.keep_secret(metastore)
        wanted = parse_scram_credentials(self._config.scram_credentials or "")
        for user, mechanism in self.scram.create_missing(wanted, metastore):
            logger.info("user created user=%r mechanism=%s", user, mechanism)
        self._refuse_lock_out()

    async def open(self) -> None:
        """Fetch the keys for tokens, before the first login by token; raises ConfigError."""
        if self._tokens is not None:
            await self._tokens.open()

    def close(self) -> None:
        """Stop fetching keys, and close the threads that verify passwords."""
        if self._tokens is not None:
            self._tokens.close()
        for each in self._passwords:
            each.close()

    def _refuse_lock_out(self) -> None:
        """Raise ConfigError if no user can log in at a listener, and no client could add one."""
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
        """Yield every mechanism of every listener, or None for a listener without logins."""
        for endpoint in self._config.endpoints:
            if not endpoint.has_login:
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
            raise hidden(where, 'no user is set; write user_NAME="password"')
        self._plain_users.append(users)
        return lambda only: PlainServer(users.verify, only)

    def _scram(self, listener: ListenerConfig, name: str, mechanism: str) -> NewExchange:
        self._modules.of(listener, name, mechanism)  # Checks only that it is this mechanism's.
        kind = self._offered_scram[mechanism] = scram.MECHANISMS[mechanism]
        find = self.scram.finder(kind)
        return lambda only: ScramServer(kind, find, random_text(NONCE_BYTES), only)

    def _oauthbearer(self, listener: ListenerConfig, name: str, mechanism: str) -> NewExchange:
        module = self._modules.of(listener, name, mechanism)
        for option in module.options if module is not None else ():
            if option.startswith(UNSECURED_RULES):
                where = self._modules.where(listener, name, mechanism)
                raise hidden(where, f"{option}: tokens without a signature are never good")
        if self._tokens is None:
            try:
                from barnabas.broker.security.sasl.token_logins import TokenLogins
            except ModuleNotFoundError as error:
                key = listener.setting_name("sasl.enabled.mechanisms")
                reason = (
                    f"{key}: {mechanism} needs {error.name}, which is not installed: "
                    "run pip install '.[security]' in a checkout of Barnabas"
                )
                raise ConflictingValues(key, mechanism, reason) from None
            self._tokens = TokenLogins(self._clock)
        return self._tokens.exchange_of(listener, name)
