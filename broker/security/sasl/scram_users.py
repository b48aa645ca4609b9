"""SCRAM users: the stored credentials, and the responses for unknown users.

Rules of this file:

* **Responses do not reveal which users exist.** For every other name a salt is derived from the
  name and a secret of this cluster, always the same one; it looks like the salts of
  ``kafka-configs``. It is derived for existing users as well, so that both take the same time.
* A credential with fewer iterations than Kafka allows does not count. It can only come from a
  directory of Apache Kafka.
* A change is in the MetaStore before it counts here (``broker/metadata/user_credentials.py``).
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.protocol.sasl.scram import (
    ITERATIONS_MIN,
    MECHANISMS,
    ScramCredential,
    ScramMechanism,
    credential_of,
    salted_password,
)
from barnabas.storage.metastore.interface import ScramRow
from barnabas.storage.runtime.chance import random_bytes

if TYPE_CHECKING:
    from barnabas.broker.config.scram_credentials import NewCredential
    from barnabas.storage.metastore.interface import MetaStore

logger = logging.getLogger("barnabas.broker.security.sasl.scram_users")

KEPT_AS: Final = "scram salts"
"""Name of the secret in the MetaStore."""
USERS_MAX: Final = 100_000
"""Maximum number of credentials, which are kept in memory."""
_SALT_BITS: Final = 130
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


class Owner(NamedTuple):
    """Key of a credential: a user has one for each mechanism."""

    user: str
    mechanism: str


class ScramUsers:
    """Credentials of one broker, and substitutes for unknown users."""

    def __init__(self, iterations: int = ITERATIONS_MIN) -> None:
        """``iterations`` are those of unknown users and of new credentials."""
        self._iterations = iterations
        self._by_owner: dict[Owner, ScramCredential] = {}
        # Replaced by the stored secret in most cases (keep_secret).
        self._secret = random_bytes(32)
        self._nothing = random_bytes(64)

    def keep_secret(self, metastore: MetaStore) -> None:
        """Load or store the secret, so that the salts of unknown users survive a restart."""
        self._secret = metastore.keep_secret(KEPT_AS, self._secret)

    def load(self, rows: Iterable[ScramRow]) -> None:
        """Load the stored credentials."""
        self._by_owner = {Owner(row.user, row.mechanism): _credential(row) for row in rows}
        for owner, credential in self._by_owner.items():
            if credential.iterations < ITERATIONS_MIN:
                logger.warning(
                    "user=%r cannot log in with %s: its credential has %d iterations, fewer "
                    "than %d",
                    owner.user,
                    owner.mechanism,
                    credential.iterations,
                    ITERATIONS_MIN,
                )

    # ----------------------------------------------------------------------------------- queries

    def __len__(self) -> int:
        return len(self._by_owner)

    def __contains__(self, owner: Owner) -> bool:
        return owner in self._by_owner

    def has_users_of(self, mechanism: str) -> bool:
        """Whether any user can log in with a mechanism."""
        return any(
            owner.mechanism == mechanism and credential.iterations >= ITERATIONS_MIN
            for owner, credential in self._by_owner.items()
        )

    def rows(self) -> list[ScramRow]:
        """Return all credentials as they are stored."""
        return [
            row_of(owner.user, MECHANISMS[owner.mechanism], credential)
            for owner, credential in self._by_owner.items()
        ]

    def names(self) -> list[str]:
        """Return the names of users with a credential."""
        return sorted({owner.user for owner in self._by_owner})

    def iterations_of(self, user: str) -> list[tuple[ScramMechanism, int]]:
        """Return the mechanisms for which a user has a credential, and its iterations."""
        return [
            (mechanism, self._by_owner[Owner(user, name)].iterations)
            for name, mechanism in MECHANISMS.items()
            if Owner(user, name) in self._by_owner
        ]

    def finder(self, mechanism: ScramMechanism) -> Callable[[str], ScramCredential]:
        """Return a function that finds a name's credential, or a substitute that nothing
        matches.
        """

        def find(name: str) -> ScramCredential:
            made_up = self._made_up(mechanism, name)
            stored = self._by_owner.get(Owner(name, mechanism.name), made_up)
            return stored if stored.iterations >= ITERATIONS_MIN else made_up

        return find

    def _made_up(self, mechanism: ScramMechanism, name: str) -> ScramCredential:
        seed = hmac.digest(self._secret, f"{mechanism.name} {name}".encode(), "sha256")
        salt = _salt(int.from_bytes(seed) >> (256 - _SALT_BITS))
        nothing = self._nothing[: mechanism.digest_bytes]
        return ScramCredential(salt, nothing, nothing, self._iterations)

    # ------------------------------------------------------------------------------------ changes

    def change(self, upserted: Sequence[ScramRow], deleted: Sequence[Owner]) -> set[Owner]:
        """Set and delete credentials; return the owners of changed and deleted ones."""
        new = {Owner(row.user, row.mechanism): _credential(row) for row in upserted}
        ended = {owner for owner in deleted if owner in self._by_owner}
        ended |= {
            owner
            for owner, credential in new.items()
            if self._by_owner.get(owner, credential) != credential
        }
        for owner in deleted:
            self._by_owner.pop(owner, None)
        self._by_owner |= new
        return ended

    def create_missing(self, wanted: Sequence[NewCredential], metastore: MetaStore) -> list[Owner]:
        """Create the missing users; takes time, since passwords are hashed.

        Durable when this returns; raises MetaStoreError.
        """
        rows = [
            self._row_of(each)
            for each in wanted
            if Owner(each.user, each.mechanism.name) not in self._by_owner
        ]
        if rows:
            metastore.change_scram_credentials(rows, [])
            self.change(rows, [])
        return [Owner(row.user, row.mechanism) for row in rows]

    def _row_of(self, new: NewCredential) -> ScramRow:
        iterations = new.iterations or self._iterations
        salt = new.salt or new_salt()
        if new.salted_password is not None:
            salted = new.salted_password
        else:
            assert new.password is not None
            salted = salted_password(new.mechanism, new.password, salt, iterations)
        return row_of(
            new.user, new.mechanism, credential_of(new.mechanism, salted, salt, iterations)
        )


def new_salt() -> bytes:
    """Return a salt for a new credential, like those of ``kafka-configs``."""
    return _salt(int.from_bytes(random_bytes(32)) >> (256 - _SALT_BITS))


def row_of(user: str, mechanism: ScramMechanism, credential: ScramCredential) -> ScramRow:
    """Return a credential as a row."""
    return ScramRow(
        user,
        mechanism.name,
        credential.salt,
        credential.stored_key,
        credential.server_key,
        credential.iterations,
    )


def _credential(row: ScramRow) -> ScramCredential:
    return ScramCredential(row.salt, row.stored_key, row.server_key, row.iterations)


def _salt(number: int) -> bytes:
    """Write a number to base 36, as Kafka's tools make salts."""
    digits = []
    while number:
        number, digit = divmod(number, 36)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits)).encode() or b"0"
