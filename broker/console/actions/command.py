"""One request to change something: read, allowed, and what doing it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.broker.admin.observed import ObservedBroker
from barnabas.broker.console.actions.wire import WireClient
from barnabas.broker.console.pages.topics import topic_of
from barnabas.broker.security.acls.operations import ResourceType
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.console.actions.fields import FieldValue, Headers
    from barnabas.broker.console.jobs.registry import Jobs
    from barnabas.broker.console.pacing import Pace
    from barnabas.broker.console.records.pieces import RecordReaders
    from barnabas.broker.metadata.topic import Topic
    from barnabas.broker.security.acls.access import Access


class Conflict(Exception):
    """The resource has changed since the preview."""


@dataclass(frozen=True, slots=True)
class Command:
    """An action with its parameters and its user."""

    broker: ObservedBroker
    access: Access
    names: Mapping[str, str]
    """Values of the placeholders of the path, by name."""
    values: Mapping[str, FieldValue]
    pace: Pace
    jobs: Jobs
    readers: RecordReaders
    is_dry: bool = False
    """Whether the request is a dry run."""

    @property
    def wire(self) -> WireClient:
        """Return the client of the broker's handlers."""
        return WireClient(self.broker, self.access)

    def may_see(self, topic: str) -> bool:
        """Return whether the user may see a topic."""
        return self.access.may_see(ResourceType.TOPIC, topic)

    def text(self, name: str, otherwise: str = "") -> str:
        """Return a field that is text."""
        return str(self.values.get(name, otherwise))

    def number(self, name: str) -> int | None:
        """Return a field that is a number."""
        value = self.values.get(name)
        return value if isinstance(value, int) else None

    def entries(self, name: str) -> dict[str, str | None]:
        """Return a field that is a map."""
        value = self.values.get(name)
        return value if isinstance(value, dict) else {}

    def headers(self, name: str) -> Headers:
        """Return a field that is headers."""
        value = self.values.get(name)
        return value if isinstance(value, tuple) else ()

    def topic(self) -> Topic:
        """Return the topic that the path names; raises KafkaError."""
        return topic_of(self)


def invalid(words: str) -> KafkaError:
    """Return the error of a request that cannot be."""
    return KafkaError(ErrorCode.INVALID_REQUEST, words)
