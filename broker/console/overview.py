"""The broker as a whole: what it is doing, its storage, its settings, its last hours."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.listener_settings import describe_listener_settings
from barnabas.broker.config.types import SOURCE_WORDS, ConfigEntry, ConfigSource
from barnabas.broker.console.pacing import PARTITION_UNITS, ROW_UNITS
from barnabas.broker.console.shapes import (
    Bucket,
    HeatOfHistory,
    HistoryOfBroker,
    LogSize,
    Overview,
    SeriesOfHistory,
    Setting,
    SettingPage,
    Storage,
    Synonym,
)
from barnabas.broker.http.pages import readiness
from barnabas.broker.metrics.histograms import DURATION_BUCKETS
from barnabas.broker.metrics.history import DOCS, HEAT, NAMES
from barnabas.broker.version import __version__
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question
    from barnabas.broker.metrics.history import History
    from barnabas.storage.counts import Histogram
    from barnabas.storage.log_store import LogStore

LARGEST_SHOWN: Final = 20
DIGITS: Final = 3
SETTING_ORDERS: Final[Mapping[str, tuple[type, ...]]] = {"key": (str,)}
BOUNDS_US: Final = tuple(2**number for number in range(DURATION_BUCKETS))
"""Upper bounds of a histogram of durations: the first is 1.024 us."""


async def overview(question: Question) -> Overview:
    """Say what the broker is doing."""
    broker = question.broker
    history = broker.history
    open_count, oldest = 0, math.inf
    for machine in broker.transactions.machines:
        for each in list(machine.open.values()):
            await question.pace.spend()
            open_count += 1
            oldest = min(oldest, each.start_ms)
    worst = await question.worst.of(question)
    files = broker.logs.files
    await broker.transactions.durable()
    return Overview(
        question.now_ms,
        broker.cluster_id,
        broker.node_id,
        __version__,
        readiness(broker),
        {} if history is None else {each: _number(history.fine[each].newest) for each in NAMES},
        len(broker.catalogue.topics),
        len(broker.logs.logs),
        len(broker.sockets.connections),
        sum(len(machine.transactions) for machine in broker.transactions.machines),
        open_count,
        None if math.isinf(oldest) else int(oldest),
        broker.logs.free_bytes,
        0 if files is None else files.used_bytes,
        worst,
    )


async def storage(question: Question) -> Storage:
    """Describe the data directory."""
    broker = question.broker
    logs = broker.logs
    total, sizes = 0, []
    for log in list(logs.logs.values()):
        await question.pace.spend(PARTITION_UNITS + len(log.segments))
        size_bytes = log.size_bytes
        total += size_bytes
        sizes.append((size_bytes, log.topic, log.partition))
        if len(sizes) >= 2 * LARGEST_SHOWN:
            sizes.sort(reverse=True)
            del sizes[LARGEST_SHOWN:]
    sizes.sort(reverse=True)
    files = logs.files
    return Storage(
        question.now_ms,
        _directory(logs),
        logs.file_system.total_bytes(logs.root),
        logs.file_system.free_bytes(logs.root),
        logs.full,
        0 if files is None else files.used_bytes,
        0 if files is None else files.appended_bytes,
        logs.journal.backlog_bytes,
        _buckets(logs.flush_times),
        logs.flush_batches.sum,
        broker.scrubber.describe_damage(),
        len(logs.logs),
        total,
        tuple(LogSize(topic, partition, size) for size, topic, partition in sizes[:LARGEST_SHOWN]),
    )


def _directory(logs: LogStore) -> str:
    return os.path.abspath(logs.root)


def _buckets(histogram: Histogram) -> tuple[Bucket, ...]:
    counts = histogram.counts[:]  # A storage thread may count meanwhile.
    longer = sum(counts[DURATION_BUCKETS:])
    return (*map(Bucket, BOUNDS_US, counts), Bucket(None, longer))


async def list_settings(question: Question) -> SettingPage:
    """List the keys of the configuration, as they are now."""
    wanted, changed = question.text("filter").casefold(), bool(question.values["changed"])
    selection = question.selection(SETTING_ORDERS)
    entries = {}
    config = question.broker.config
    for each in (*config.describe(), *describe_listener_settings(config)):
        await question.pace.spend()
        if wanted in each.name and not (changed and each.source is ConfigSource.DEFAULT):
            entries[each.name] = each
            selection.offer(each.name)
    page, following = selection.page()
    rows = []
    for place in page:
        await question.pace.spend(ROW_UNITS)
        rows.append(_setting(entries[str(place[0])]))
    return SettingPage(question.now_ms, following, tuple(rows))


def _setting(entry: ConfigEntry) -> Setting:
    synonyms = (Synonym(each.name, each.value, _words(each.source)) for each in entry.synonyms)
    source = _words(entry.source)
    return Setting(entry.name, entry.shown, source, entry.type.name, tuple(synonyms))


def _words(source: ConfigSource) -> str:
    return SOURCE_WORDS.get(source, source.name)


async def history(question: Question) -> HistoryOfBroker:
    """Return what was recorded of some series."""
    recorded = question.broker.history
    if recorded is None:
        words = "there is no history: barnabas.console.history"
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, words)
    wanted = list(dict.fromkeys(question.text("series").split(",")))
    heat = [each for each in wanted if each in HEAT]
    names = [each for each in wanted if each not in HEAT]
    for name in names:
        if name not in DOCS:
            known = ", ".join((*NAMES, *HEAT))
            words = f"series: {name[:80]} is none; there are: {known}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, words)
    step_s, since_ms = int(question.values["step_s"]), int(question.values["since_ms"])
    is_fine = step_s == 1
    times = (recorded.fine_times if is_fine else recorded.coarse_times).values()
    first = next((number for number, time in enumerate(times) if time >= since_ms), len(times))
    rings = recorded.fine if is_fine else recorded.coarse
    series = []
    for name in names:
        await question.pace.spend(len(times) - first)
        values = tuple(map(_number, rings[name].values()[first:]))
        series.append(SeriesOfHistory(name, DOCS[name], values))
    return HistoryOfBroker(
        question.now_ms,
        step_s,
        tuple(map(int, times[first:])),
        tuple(series),
        tuple(_heat(recorded, name, since_ms) for name in heat),
    )


def _heat(recorded: History, name: str, since_ms: int) -> HeatOfHistory:
    times = recorded.coarse_times.values()
    first = next((number for number, time in enumerate(times) if time >= since_ms), len(times))
    rows = recorded.heat[name].rows()[first:]
    return HeatOfHistory(name, BOUNDS_US, tuple(map(int, times[first:])), tuple(map(tuple, rows)))


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(value, DIGITS)
