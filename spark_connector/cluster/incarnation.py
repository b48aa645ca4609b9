"""IDs of the topics and clusters of a checkpoint, since a name can be used again.

An offset has no meaning in a topic that was deleted and created again, or on a broker with a new
data directory: a pipeline that continued there would silently skip records. So each entry of the
ledger has the IDs of the topics that its batch has read and written, and those of their clusters.
Until the first entry exists, a file in the checkpoint has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

from barnabas.spark_connector.errors import CheckpointMismatch, Recreated

VERSION: Final = 1


class Home(NamedTuple):
    """IDs of a cluster and of topics in it, as Kafka's tools print them."""

    cluster_id: str = ""
    """Empty if unknown."""
    topics: Mapping[str, str] = MappingProxyType({})
    """Known IDs by topic name."""

    def as_plain(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"cluster": self.cluster_id, "topics": dict(self.topics)}

    @classmethod
    def of_plain(cls, found: Mapping[str, Any]) -> Self:
        """Return the object of :meth:`as_plain`; raises LookupError, TypeError or ValueError."""
        topics = {str(name): str(each) for name, each in dict(found["topics"]).items()}
        return cls(str(found["cluster"]), topics)

    def following(self, before: Home, topics: Mapping[str, object]) -> Home:
        """Return the IDs of these topics, with the earlier ID of each that is unknown now."""
        ids = {**before.topics, **self.topics}
        kept = {name: ids[name] for name in topics if name in ids}
        return Home(self.cluster_id or before.cluster_id, kept)


class Incarnation(NamedTuple):
    """Source and target of a checkpoint."""

    source: Home = Home()
    sink: Home = Home()
    """Target, including the ledger's topic."""

    def as_plain(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"source": self.source.as_plain(), "sink": self.sink.as_plain()}

    @classmethod
    def of_plain(cls, found: Mapping[str, Any]) -> Self:
        """Return the object of :meth:`as_plain`; raises LookupError, TypeError or ValueError."""
        return cls(Home.of_plain(found["source"]), Home.of_plain(found["sink"]))


UNKNOWN: Final = Incarnation()


def as_text(incarnation: Incarnation) -> str:
    """Return the text of the file in the checkpoint."""
    return json.dumps({"version": VERSION, **incarnation.as_plain()}, indent=1, sort_keys=True)


def of_text(text: str | None, location: str) -> Incarnation:
    """Return the object of :func:`as_text`; raises CheckpointMismatch if the text is damaged."""
    if text is None:
        return UNKNOWN
    try:
        found = json.loads(text)
        readers = {VERSION: Incarnation.of_plain}
        return readers[found["version"]](found)
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise CheckpointMismatch(
            f"The checkpoint {location} does not say any more which topics it is about, its file"
            f" cannot be read ({error!r}); restore the checkpoint, or start with a new one."
        ) from None


def check(before: Incarnation, now: Incarnation, accepted: frozenset[str], sink_id: str) -> None:
    """Raise Recreated if an ID has changed and the new one is not in ``accepted``."""
    changes = [
        change
        for change in (
            *_changes("source", before.source, now.source),
            *_changes("sink", before.sink, now.sink),
        )
        if change.now not in accepted
    ]
    if not changes:
        return
    ids = ",".join(dict.fromkeys(each.now for each in changes))
    raise Recreated(
        f"The checkpoint of the sink {sink_id} does not fit the topics and logs of now:"
        f" {'; '.join(each.text for each in changes)}; so offsets of the checkpoint mean other"
        " records, or results are lost: start with a new checkpoint directory to process the"
        " present input from its beginning (a refusal of it names the value of newQuery to set), or"
        f" set acceptIds={ids} to continue from the checkpoint."
    )


class _Change(NamedTuple):
    text: str
    now: str


def _changes(role: str, before: Home, now: Home) -> Iterator[_Change]:
    if before.cluster_id and now.cluster_id and before.cluster_id != now.cluster_id:
        yield _Change(
            f"the {role}'s cluster had the id {before.cluster_id} and has {now.cluster_id}",
            now.cluster_id,
        )
    for name, known in before.topics.items():
        found = now.topics.get(name, known)
        if found != known:
            yield _Change(
                f"the {role}'s topic {name} had the id {known} and has {found}, it was deleted and"
                " made again",
                found,
            )
