"""The process that a broker is: it runs until a signal or a failure ends it."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
from collections.abc import Callable
from typing import Final

from barnabas.broker.config.addresses import address_text
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.server import BrokerServer

logger = logging.getLogger("barnabas.broker.server")

COLLECTOR_THRESHOLDS: Final = (10_000, 2, 0)
"""When the collector looks for cycles: ``gc.set_threshold``.

10,000 new objects: at the default, 700, it went through the batches of every other transaction on
their way to the disk. A collection of the middle generation goes through the new objects of three
collections of the first, 30,000 objects, without a pause for the loop: 5 ms. At the default, ten,
it went through 110,000: 20 ms, and over 100 ms on a crowded machine. Each second collection of the
middle generation is a full one. It goes through the 60,000 objects that are new since the last full
one: 18 ms on a crowded machine. ``_freeze_survivors`` excludes all others: the 1,280,000 objects of
40,000 partitions that are created after the start would take 530 ms.
"""


def run(config: BrokerConfig, on_ready: Callable[[str], None]) -> int:
    """Run a broker until SIGTERM or SIGINT; return the exit code of the process.

    ``on_ready`` gets a line for each listener, then the ready line. Raises what
    ``BrokerServer.start`` raises. A second signal ends the process without waiting; so does a
    failure after which nothing can be promised.
    """
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_serve(config, on_ready))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the factory of the event loop: uvloop's if it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


async def _serve(config: BrokerConfig, on_ready: Callable[[str], None]) -> int:
    server = BrokerServer(config)
    stop_requested = asyncio.Event()
    loop = asyncio.get_running_loop()

    def ask(number: int) -> None:
        if stop_requested.is_set():
            logger.warning("second signal, ending at once signal=%s", signal.Signals(number).name)
            end_process(128 + number)
        stop_requested.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask, number)
    if any(each.has_tls for each in config.endpoints):
        loop.add_signal_handler(signal.SIGHUP, server.reload_certificates)
    # What a start makes stays: the collector need not look at it, now or later.
    gc.collect()
    gc.disable()
    if not await _started(server, stop_requested):
        return 0
    for line in (*listening_lines(server), *console_lines(server), ready_line(server)):
        on_ready(line)
    collecting = loop.create_task(_collect_once_loaded(server))
    failure = loop.create_task(server.wait_for_failure())
    stopping = loop.create_task(stop_requested.wait())
    await asyncio.wait({failure, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    collecting.cancel()
    if not failure.done():
        logger.info("broker stops")
        gc.freeze()  # There is nothing left to gain from looking at what there is.
        if not await server.stop() and server.failure is None:
            end_process(0)
    if server.failure is not None:
        end_process(1)
    failure.cancel()
    return 0


def listening_lines(server: BrokerServer) -> list[str]:
    """Return one line for each listener, with the addresses for clients."""
    lines = []
    for each in server.listeners:
        host = each.host or "0.0.0.0"  # noqa: S104  what users write for "every interface"
        line = f"listening on {each.name}://{address_text(host, each.bound[1])}"
        if each.advertised is not None and each.advertised != (each.host, each.bound[1]):
            line += f", clients are sent to {address_text(*each.advertised)}"
        lines.append(line)
    return lines


def ready_line(server: BrokerServer) -> str:
    """Return the line that container tools wait for: the broker is ready."""
    return (
        f"[KafkaServer id={server.node_id}] started: "
        "Transitioning from RECOVERY to RUNNING (Kafka Server started)"
    )


def console_lines(server: BrokerServer) -> list[str]:
    """Return the console's address for a browser: one line, or none if no login is possible."""
    is_closed = server.login_closed_reason is not None
    if server.http is None or server.config.console_access == "none" or is_closed:
        return []
    host, port = server.http.address
    named = "localhost" if host in {"127.0.0.1", "::1", "0.0.0.0", "::", ""} else host  # noqa: S104
    return [f"console on http://{f'[{named}]' if ':' in named else named}:{port}/"]


async def _collect_once_loaded(server: BrokerServer) -> None:
    """Enable the collector once the coordinators are loaded, for objects that are created later."""
    await server.coordinators_loaded()
    collect_new_objects()


def collect_new_objects() -> None:
    """Enable the collector for objects that are created from now on."""
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    gc.callbacks.append(_freeze_survivors)
    gc.enable()


def _freeze_survivors(phase: str, info: dict[str, int]) -> None:
    """Exclude the survivors of a full collection from later ones, so that none takes long.

    A frozen object is freed with its last reference; a frozen cycle is not. So the parts of a
    connection, a partition or a group must not form cycles that outlive them
    (``tests/real/test_garbage.py``).
    """
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()


async def _started(server: BrokerServer, stop_requested: asyncio.Event) -> bool:
    """Start a broker; return False if a stop was requested before the start was complete."""
    loop = asyncio.get_running_loop()
    starting = loop.create_task(server.start())
    stopping = loop.create_task(stop_requested.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait({starting})
    if starting.cancelled():
        logger.info("broker stops before it has started")
        return False
    await starting
    return True


def end_process(code: int) -> None:
    """End without running anything more: threads may be stuck in a disk that does not answer."""
    logging.shutdown()
    os._exit(code)
