"""The broker as a whole: what it is doing, its storage, its settings, its last hours."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.listener_keys import PREFIX
from barnabas.broker.config.listener_settings import (
    describe_settings,
    is_of_one_listener,
)
from barnabas.broker.config.types import SOURCE_WORDS, ConfigEntry, ConfigSource
from barnabas.broker.console.pacing import PARTITION_UNITS
from barnabas.broker.console.shapes import (
    Bucket,
    Compaction,
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
from barnabas.broker.http.pages import readiness, warnings_of
from barnabas.broker.metrics.histograms import DURATION_BUCKETS
from barnabas.broker.metrics.history import DOCS, HEAT, NAMES
from barnabas.broker.version import __version__
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question
    from barnabas.storage.counts import Histogram
    from barnabas.storage.store.log_store import LogStore

LARGEST_SHOWN: Final = 20
DIGITS: Final = 3
SETTING_ORDERS: Final[Mapping[str, tuple[type, ...]]] = {"key": (str,)}
BOUNDS_US: Final = tuple(2**number for number in range(DURATION_BUCKETS))
"""Upper bounds of a histogram of durations: the first is 1.024 us."""


async def overview(question: Question) -> Overview:
    """Return the current activity of the broker."""
    broker = question.broker
    history = broker.history
    open_count, oldest = 0, math.inf
    for machine in broker.transactions.machines:
        for each in list(machine.open.values()):
            await question.pace.spend()
            open_count += 1
            oldest = min(oldest, each.start_ms)
    worst = await question.worst.of(question)
    await question.durable()
    return Overview(
        question.now_ms,
        broker.cluster_id,
        broker.node_id,
        __version__,
        readiness(broker),
        warnings_of(broker),
        {} if history is None else {each: _number(history.fine[each].newest) for each in NAMES},
        len(broker.catalogue.topics),
        len(broker.logs.logs),
        len(broker.sockets.connections),
        sum(len(machine.transactions) for machine in broker.transactions.machines),
        open_count,
        None if math.isinf(oldest) else int(oldest),
        broker.logs.free_bytes,
        _until_full_ms(question),
        broker.logs.journal_bytes,
        broker.logs.duplicates,
        worst,
    )


def _until_full_ms(question: Question) -> int | None:
    history = question.broker.history
    seconds = None if history is None else history.time_until_full_s()
    return None if seconds is None else round(1000 * seconds)


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
        _until_full_ms(question),
        broker.history is not None,
        logs.journal_bytes,
        0 if files is None else files.appended_bytes,
        logs.journal.backlog_bytes,
        _buckets(logs.flush_times),
        logs.flush_batches.sum,
        broker.scrubber.describe_damage(),
        len(logs.logs),
        total,
        tuple(LogSize(topic, partition, size) for size, topic, partition in sizes[:LARGEST_SHOWN]),
        tuple(Compaction(*each) for each in reversed(broker.cleaner.latest)),
    )


def _directory(logs: LogStore) -> str:
    return os.path.abspath(logs.root)


def _buckets(histogram: Histogram) -> tuple[Bucket, ...]:
    counts = histogram.counts[:]  # A storage thread may count meanwhile.
    longer = sum(counts[DURATION_BUCKETS:])
    return (*map(Bucket, BOUNDS_US, counts), Bucket(None, longer))


async def list_settings(question: Question) -> SettingPage:
    """List the present settings."""
    wanted, changed = question.text("filter").casefold(), bool(question.values["changed"])
    selection = question.selection(SETTING_ORDERS)
    for each in describe_settings(question.broker.config):
        await question.pace.spend()
        if wanted in each.name and not (changed and each.source is ConfigSource.DEFAULT):
            selection.offer(each, each.name)
    rows = [_setting(each) async for each in selection.rows(question.pace)]
    return SettingPage(question.now_ms, selection.following, selection.total, tuple(rows))


def _setting(entry: ConfigEntry) -> Setting:
    synonyms = (Synonym(each.name, each.value, _words(each.source)) for each in entry.synonyms)
    source = _words(entry.source)
    fixed = _fixed_reason(entry)
    return Setting(
        entry.name,
        entry.shown,
        source,
        entry.type.name,
        tuple(synonyms),
        entry.documentation,
        fixed is None,
        fixed,
    )


def _fixed_reason(entry: ConfigEntry) -> str | None:
    """Return the reason that a key cannot be changed here, or None if it can."""
    if entry.read_only:
        return "only by a restart"
    if is_of_one_listener(entry.name) and not entry.name.startswith(PREFIX):
        return f"only for one listener: {PREFIX}NAME.{entry.name}"
    return None


def _words(source: ConfigSource) -> str:
    return SOURCE_WORDS.get(source, source.name)


async def history(question: Question) -> HistoryOfBroker:
    """Return the recorded values of some series."""
    recorded = question.broker.history
    if recorded is None:
        words = "history is disabled: barnabas.console.history is false"
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, words)
    names, heat = _series_of(question.text("series"))
    step_s = int(question.values["step_s"])
    # All at once: the rings move on while this waits for its turns.
    cut = recorded.cut(names, heat, is_fine=step_s == 1, since_ms=int(question.values["since_ms"]))
    series = []
    for name, values in cut.series.items():
        await question.pace.spend(len(values))
        series.append(SeriesOfHistory(name, DOCS[name], tuple(map(_number, values))))
    heat_times = tuple(map(int, cut.heat_times))
    heats = []
    for name, counts in cut.heat.items():
        await question.pace.spend(len(heat_times))
        starts = range(0, len(counts), DURATION_BUCKETS)
        spans = tuple(tuple(counts[start : start + DURATION_BUCKETS]) for start in starts)
        heats.append(HeatOfHistory(name, BOUNDS_US, heat_times, spans))
    times = tuple(map(int, cut.times))
    return HistoryOfBroker(question.now_ms, step_s, times, tuple(series), tuple(heats))


def _series_of(text: str) -> tuple[list[str], list[str]]:
    """Return the requested names of series and of histograms; raises KafkaError."""
    wanted = list(dict.fromkeys(text.split(",")))
    for name in wanted:
        if name not in DOCS and name not in HEAT:
            known = ", ".join((*NAMES, *HEAT))
            words = f"series: unknown series {name[:80]}; expected: {known}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, words)
    return [each for each in wanted if each in DOCS], [each for each in wanted if each in HEAT]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(value, DIGITS)
