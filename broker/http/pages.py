"""Pages for probes and metrics: liveness, readiness, metrics and configuration.

``/livez`` returns 200 while the loop runs and no fatal error has occurred; otherwise restart the
process. ``/readyz`` reports whether clients can be served, or the reasons why not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.broker.config.listener_settings import describe_settings
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
    """Progress of a long operation."""

    def describe(self) -> str:
        """Return the progress as text."""


class Observed(Protocol):
    """Parts of the broker that the pages of the HTTP port use."""

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
        """Progress of opening the storage, or None before it starts."""

    def cluster_warnings(self) -> dict[str, str]:
        """Return the problems between this broker and its cluster, by name."""


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
    """Return each condition for serving clients with "ok" or the reason why it does not hold."""
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
    """Return the progress of recovery as text."""
    progress = broker.recovery
    return "recovering" if progress is None else f"recovering: {progress.describe()}"


def _stopping(broker: Observed) -> str:
    """Return the current step of a stop as text."""
    logs = broker.logs
    if not logs.is_closing:
        return "stopping: requests in flight"
    if logs.files is None:
        return "stopping: what was written becomes durable in the store of the cluster"
    return f"stopping: checkpoint, {logs.synced} of {logs.to_sync} files synced"


def effective_config(broker: Observed) -> list[dict[str, object]]:
    """Return the current value of every key, including changes by clients since the start."""
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
        for entry in describe_settings(broker.config)
    ]


def warnings_of(broker: Observed) -> dict[str, str]:
    """Return problems that need an operator while the broker serves its clients.

    Damage of one log must not keep clients from all others. Nor must an unavailable store of the
    cluster: it affects every broker, and clients without any broker could not even wait for it.
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
    """Return the remaining steps while clients are served already.

    Keys of partitions that are not loaded yet get COORDINATOR_LOAD_IN_PROGRESS, which every client
    retries.
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
