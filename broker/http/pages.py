"""What is asked over HTTP: is it alive, is it ready, what does it count, how is it set.

``/livez`` answers as long as the loop turns and nothing has failed for good: a reason to restart
the process. ``/readyz`` says whether clients should be sent here, and if not, what it waits for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.broker.config.listener_settings import describe_listener_settings
from barnabas.broker.http.messages.answer import Answer, json_answer
from barnabas.broker.metrics.exposition import CONTENT_TYPE, exposition
from barnabas.broker.runtime.stage import Stage

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.coordination.groups import Groups
    from barnabas.broker.coordination.transactions import Transactions
    from barnabas.broker.metrics.families import Metrics
    from barnabas.broker.network.socket_server import SocketServer
    from barnabas.broker.upkeep.scrubbing import LogScrubber
    from barnabas.storage.store.log_store import LogStore

OK: Final = "ok"


class Progress(Protocol):
    """How far something has come."""

    def describe(self) -> str:
        """Say it for people."""


class Observed(Protocol):
    """The broker, as far as these pages look at it."""

    stage: Stage
    failure: BaseException | None
    config: BrokerConfig
    metrics: Metrics
    logs: LogStore
    sockets: SocketServer
    scrubber: LogScrubber
    groups: Groups
    transactions: Transactions

    @property
    def recovery(self) -> Progress | None:
        """How far opening storage has come, once there is something to say."""

    def cluster_warnings(self) -> dict[str, str]:
        """Return what is not well between it and its cluster, by what it is."""


def pages(broker: Observed) -> dict[str, Callable[[], Answer]]:
    """Return the pages of one broker by path."""

    def live() -> Answer:
        return _health({"loop": OK, "storage": _failure(broker) or OK})

    def ready() -> Answer:
        return _health(readiness(broker), warnings_of(broker), _progress(broker))

    def metrics() -> Answer:
        # A sync that failed may have been that of what the logs already count.
        if broker.failure is not None:
            return live()
        return Answer(200, CONTENT_TYPE, exposition(broker.metrics.collect()))

    def config() -> Answer:
        return json_answer(200, {"config": effective_config(broker)})

    return {
        "/livez": live,
        "/readyz": ready,
        "/health": ready,
        "/healthz": ready,
        "/metrics": metrics,
        "/config": config,
    }


def readiness(broker: Observed) -> dict[str, str]:
    """Return what has to be well for clients to be served, and how it is: "ok" or the reason."""
    stage = broker.stage
    listening = stage is Stage.LISTENING and broker.sockets.is_listening
    waiting = _stopping(broker) if stage is Stage.STOPPING else "not open yet"
    return {
        "storage": _failure(broker) or (OK if stage >= Stage.RECOVERED else _recovering(broker)),
        "topics": OK if stage >= Stage.PREPARED else "those of the configuration do not exist yet",
        "listeners": OK if listening else waiting,
        "disk": _full_disk(broker.logs) if stage and broker.logs.full else OK,
    }


def _recovering(broker: Observed) -> str:
    """Say how far recovery has come."""
    progress = broker.recovery
    return "recovering" if progress is None else f"recovering: {progress.describe()}"


def _stopping(broker: Observed) -> str:
    """Say what a stop waits for."""
    logs = broker.logs
    if not logs.is_closing:
        return "stopping: requests in flight"
    if logs.files is None:
        return "stopping: what was written becomes durable in the store of the cluster"
    return f"stopping: checkpoint, {logs.synced} of {logs.to_sync} files synced"


def effective_config(broker: Observed) -> list[dict[str, object]]:
    """Return every key as it is now, with what clients changed while the broker ran."""
    return [
        {
            "key": entry.name,
            "value": entry.shown,
            "source": entry.source.name,
            "type": entry.type.name,
            "synonyms": [
                {"key": each.name, "value": each.value, "source": each.source.name}
                for each in entry.synonyms
            ],
        }
        for entry in (*broker.config.describe(), *describe_listener_settings(broker.config))
    ]


def warnings_of(broker: Observed) -> dict[str, str]:
    """Return what an operator must look after although clients are served as far as possible.

    Damage of one log is no reason to keep them from all the others. Nor is a store of the cluster
    that is away: it is so for every broker, and clients that find none cannot even wait for it.
    """
    if broker.stage < Stage.PREPARED:
        return {}
    damage = broker.scrubber.describe_damage()
    unreadable = broker.groups.log.unreadable + broker.transactions.log.unreadable
    found = {} if damage is None else {"damage": damage}
    if unreadable:
        found["coordinators"] = f"cannot be loaded, their keys are refused: {', '.join(unreadable)}"
    return found | broker.cluster_warnings()


def _progress(broker: Observed) -> dict[str, str]:
    """Return what is still to come although clients are served.

    The keys of partitions that are not loaded yet are answered COORDINATOR_LOAD_IN_PROGRESS, and
    every client asks again: no reason to send them elsewhere.
    """
    if broker.stage is not Stage.LISTENING:
        return {}
    loading = [
        each.log.describe_replay()
        for each in (broker.groups, broker.transactions)
        if not each.log.replayed.is_set()
    ]
    return {"coordinators": f"loading {'; '.join(loading)}"} if loading else {}


def _health(
    checks: dict[str, str],
    warnings: dict[str, str] | None = None,
    progress: dict[str, str] | None = None,
) -> Answer:
    well = all(found == OK for found in checks.values())
    body: dict[str, object] = {"status": OK if well else "unavailable", "checks": checks}
    if warnings:
        body |= {"status": "degraded" if well else body["status"], "warnings": warnings}
    if progress:
        body["progress"] = progress
    return json_answer(200 if well else 503, body)


def _full_disk(logs: LogStore) -> str:
    return f"full, appends are refused: {logs.root}: {logs.describe_space()}"


def _failure(broker: Observed) -> str | None:
    return None if broker.failure is None else f"failed: {broker.failure!r}"
