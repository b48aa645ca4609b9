"""The users of PLAIN: those that a listener's JAAS configuration lists."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final

from barnabas.storage.runtime.chance import random_bytes

_USER: Final = "user_"


class PlainUsers:
    """User names, each with the data that verifies the user's password."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """``options`` are those of the login module; ``user_NAME`` is the password of NAME.

        Its ``username`` and ``password`` are the broker's own, for connections to others.
        """
        self._key = random_bytes(32)
        self._digests = {
            name.removeprefix(_USER): self._digest(password)
            for name, password in options.items()
            if name.startswith(_USER)
        }

    def __len__(self) -> int:
        return len(self._digests)

    def verify(self, user: str, password: str) -> bool:
        """Return whether a password is a user's; the time it takes depends on neither.

        It compares digests of one length, also for an unknown user.
        """
        known = self._digests.get(user)
        is_same = hmac.compare_digest(known or self._key, self._digest(password))
        return is_same and known is not None

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._key, password.encode(), "sha256")
