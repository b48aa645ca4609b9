"""Metrics that only Barnabas has, named by Prometheus' rules: base units, one unit per metric."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from barnabas.broker.metrics.families import (
    COUNTER,
    GAUGE,
    HISTOGRAM,
    Family,
    Sample,
    labels,
    value,
)
from barnabas.broker.metrics.histograms import NANOSECONDS, count_samples, duration_samples
from barnabas.broker.version import __version__

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import Routes
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.metrics.loop import LoopMonitor
    from barnabas.broker.network.socket_server import SocketServer
    from barnabas.storage.store.log_store import LogStore

_BUILD: Final = labels(version=__version__, python=platform.python_version())


def serving_families(monitor: LoopMonitor, sockets: SocketServer) -> Iterator[Family]:
    """Yield the metrics of the event loop, of requests and of sockets."""
    yield Family("barnabas_build_info", GAUGE, "Always 1; versions as labels.", [(_BUILD, 1)])
    yield from _loop_families(monitor)
    yield from _request_families(sockets.routes)
    yield from _socket_families(sockets)
    yield from _tls_families(sockets)


def storage_families(
    catalogue: Catalogue, logs: LogStore, sockets: SocketServer
) -> Iterator[Family]:
    """Yield the metrics of flushes, disk space and duplicates."""
    yield from _flush_families(logs)
    yield from _journal_families(logs)
    yield from _disk_families(logs)
    held_back = int(sockets.backlog.is_behind)
    doc = "1: Produce requests are delayed because the disk is too slow; otherwise 0."
    yield value("barnabas_producers_delayed", GAUGE, doc, held_back)
    yield _duplicates(catalogue, logs)


def _loop_families(monitor: LoopMonitor) -> Iterator[Family]:
    yield Family(
        "barnabas_loop_lag_seconds",
        HISTOGRAM,
        "Delay of a timer of the event loop, measured once a second.",
        duration_samples(monitor.lag),
    )
    yield value(
        "barnabas_loop_busy_seconds_total",
        COUNTER,
        "CPU time of the event loop's thread; it uses one core at most.",
        monitor.busy_ns / NANOSECONDS,
    )


def _request_families(routes: Routes) -> Iterator[Family]:
    def samples() -> Iterator[Sample]:
        for route in routes:
            if route.requests:
                yield from duration_samples(route.times, f'api="{route.name}"')

    yield Family(
        "barnabas_request_seconds",
        HISTOGRAM,
        "Time from decoding a request to writing its response, with waits for disk and data.",
        samples(),
    )


def _socket_families(sockets: SocketServer) -> Iterator[Family]:
    for name, doc, number in (
        ("connections_accepted_total", "Accepted connections.", sockets.connections_accepted),
        ("connections_refused_total", "Refused connections.", sockets.connections_refused),
        ("login_failures_total", "Failed authentications.", sockets.failed_logins.count),
        (
            "connections_closed_for_memory_total",
            "Connections closed because others waited for the memory of their incomplete request.",
            sockets.frame_budget.evicted,
        ),
        ("received_bytes_total", "Bytes received from clients.", sockets.received_bytes),
        ("sent_bytes_total", "Bytes sent to clients.", sockets.sent_bytes),
    ):
        yield value(f"barnabas_{name}", COUNTER, doc, number)
    yield value("barnabas_connections", GAUGE, "Open connections.", len(sockets.connections))
    yield value(
        "barnabas_large_frame_bytes",
        GAUGE,
        "Memory of large requests that are incomplete or wait.",
        sockets.frame_budget.used_bytes,
    )


def _tls_families(sockets: SocketServer) -> Iterator[Family]:
    """Yield the metrics of listeners with TLS."""
    if sockets.tls is None:
        return
    handshakes, listeners = sockets.tls.handshakes, sockets.tls_listeners
    yield Family(
        "barnabas_tls_handshakes_total",
        COUNTER,
        "TLS handshakes by result; a displaced one was ended to make room for another.",
        (
            (labels(result=result), number)
            for result, number in (
                ("completed", handshakes.completed),
                ("failed", handshakes.failed),
                ("displaced", handshakes.displaced),
            )
        ),
    )
    under_way = handshakes.under_way
    yield value("barnabas_tls_handshakes", GAUGE, "TLS handshakes in progress.", under_way)
    yield Family(
        "barnabas_tls_certificate_not_after_seconds",
        GAUGE,
        "End of validity of the certificate in a listener's chain that expires first.",
        ((labels(listener=each.name), each.not_after_s) for each in listeners),
    )
    yield Family(
        "barnabas_tls_certificate_reload_failed",
        GAUGE,
        "1: the listener cannot load the files of its stores and keeps the old ones; else 0.",
        ((labels(listener=each.name), int(each.problem is not None)) for each in listeners),
    )


def _flush_families(store: LogStore) -> Iterator[Family]:
    yield Family(
        "barnabas_flush_seconds",
        HISTOGRAM,
        "Time until one write to the journal (in a cluster: to its store) was durable.",
        duration_samples(store.flush_times),
    )
    yield Family(
        "barnabas_flush_batches",
        HISTOGRAM,
        "Batches in one write to the journal (in a cluster: to its store).",
        count_samples(store.flush_batches),
    )


def _journal_families(store: LogStore) -> Iterator[Family]:
    """Yield the metrics of a journal in files, which a broker of a cluster does not have."""
    files = store.files
    if files is None:
        return
    yield value(
        "barnabas_journal_written_bytes_total",
        COUNTER,
        "Bytes written to the journal, which a broker of a cluster does not have.",
        files.appended_bytes,
    )
    yield value(
        "barnabas_journal_bytes",
        GAUGE,
        "Bytes of the journal that a start after a crash would read.",
        files.used_bytes,
    )


def _disk_families(store: LogStore) -> Iterator[Family]:
    for name, doc, number in (
        (
            "journal_backlog_bytes",
            "Bytes in memory that are not yet in the segments.",
            store.journal.backlog_bytes,
        ),
        ("disk_full", "1: appends are refused, the disk is full; else 0.", int(store.full)),
        ("disk_free_bytes", "Free disk space.", store.file_system.free_bytes(store.root)),
    ):
        yield value(f"barnabas_{name}", GAUGE, doc, number)


def _duplicates(catalogue: Catalogue, logs: LogStore) -> Family:
    """Return the numbers of rejected duplicate batches."""
    topics = list(catalogue.topics.values())

    def samples() -> Iterator[Sample]:
        for topic in topics:
            number = sum(log.counts.duplicates for _, log in topic.partitions_here())
            yield labels(topic=topic.name), number
        yield "", logs.duplicates

    return Family(
        "barnabas_duplicate_batches_total",
        COUNTER,
        "Repeated batches that were not written again. Without a topic: sum of all topics.",
        samples(),
    )
