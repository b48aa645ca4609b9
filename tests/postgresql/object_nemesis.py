"""The object store of a cluster that is tormented: what fails there, and what it must have.

versitygw has the objects. Brokers reach it by links that can be cut, and through a gateway that
fails request by request. They delete all that is unused at once and all the time
(``hurried_broker.py``).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple, Self

from barnabas.broker.cli.proving.faults import Fault
from barnabas.storage.objects.blob_store import (
    SEGMENTS_PREFIX,
    UPLOADS_PREFIX,
    keys_with,
)
from tests.checkout import ROOT
from tests.counterparts import scripted_s3
from tests.counterparts.broker_process import HOST, BrokerDied
from tests.counterparts.object_stores import Versitygw
from tests.counterparts.postgresql_servers import Pair
from tests.counterparts.probe import free_port
from tests.counterparts.s3_gateway import S3Gateway
from tests.counterparts.scripted_s3 import Kind
from tests.postgresql.brokers import LEASE_MS, LinkedMember
from tests.postgresql.links import Between, Links
from tests.postgresql.object_stores import BUCKET, settings_of
from tests.waiting import wait_until

OBJECTS = "objects"
LEASE_S = LEASE_MS / 1000
OBJECT_FAULTS = {
    "fail_requests": 8,
    "crash_objects": 1,
    "pause_objects": 1,
    "refuse_objects": 1,
}
AWAY_S = (0.5 * LEASE_S, 2.5 * LEASE_S)
MOST_FAILED = 10
"""Maximum number of requests that one fault fails."""
MOST_LATE = 30
"""Maximum number of requests after which a ghost appears, and of objects a listing lacks."""
MOST_SLOW_S = 3.0
MOST_STARTS = 40
"""Attempts to start a broker, each of which takes some seconds if the store refuses it."""
REFUSED_STARTS = ("object store at", "guard of the object store cannot be read")
"""Reasons for which a broker ends at its start while the store fails."""
GARBAGE_S = 60
"""Maximum time until brokers have deleted all unused objects."""
MOST_UNNAMED = 12
"""Objects without a name that three brokers may have in an otherwise idle cluster."""


class Failing(NamedTuple):
    """Requests that fail, and how."""

    method: str
    kind: Kind
    status: int = 503
    code: str = "SlowDown"
    keys: tuple[str, ...] = ("",)


BODIES = (UPLOADS_PREFIX, SEGMENTS_PREFIX)
FAILING: Mapping[str, Failing] = {
    "put-throttled": Failing("PUT", Kind.ERROR),
    "put-too-many": Failing("PUT", Kind.ERROR, 429, "TooManyRequests"),
    "put-failed": Failing("PUT", Kind.ERROR, 500, "InternalError"),
    "put-failed-late": Failing("PUT", Kind.ERROR_AFTER_EFFECT, 500, "InternalError"),
    "put-reset": Failing("PUT", Kind.RESET),
    "put-reset-late": Failing("PUT", Kind.RESET_AFTER_EFFECT),
    "put-ghost": Failing("PUT", Kind.GHOST, keys=BODIES),
    "put-slow": Failing("PUT", Kind.SLOW),
    "get-throttled": Failing("GET", Kind.ERROR),
    "get-failed": Failing("GET", Kind.ERROR, 500, "InternalError"),
    "get-reset": Failing("GET", Kind.RESET),
    "get-cut": Failing("GET", Kind.CUT),
    "get-slow": Failing("GET", Kind.SLOW),
    "list-stale": Failing("LIST", Kind.STALE, keys=BODIES),
    "list-failed": Failing("LIST", Kind.ERROR, 500, "InternalError"),
    "list-cut": Failing("LIST", Kind.CUT),
    "delete-failed": Failing("DELETE", Kind.ERROR, 500, "InternalError"),
    "delete-failed-late": Failing("DELETE", Kind.ERROR_AFTER_EFFECT, 500, "InternalError"),
    "delete-reset-late": Failing("DELETE", Kind.RESET_AFTER_EFFECT),
}
"""Faults of single requests. An object that is lost after its confirmation, or is damaged at rest,
is none of them: no store that may be used does that."""
REFUSALS = ("credentials", "bucket")


class Objects:
    """The store, and what fails on the way to it."""

    def __init__(self, server: Versitygw, gateway: S3Gateway, links: Links) -> None:
        self.server = server
        self._gateway = gateway
        self._links = links

    @classmethod
    @contextmanager
    def running(cls, directory: Path, links: Links) -> Iterator[Self]:
        """Start the store and its gateway, until the end of the block."""
        with ExitStack() as stack:
            server = stack.enter_context(Versitygw(directory / "versitygw"))
            server.create_bucket(BUCKET)
            yield cls(server, stack.enter_context(S3Gateway(server, BUCKET)), links)

    def settings_for(self, number: int) -> dict[str, str]:
        """Return the settings of a broker that has a link of its own to the store."""
        port = free_port()
        self._links.listen(port, self._gateway.port, Between(number, OBJECTS))
        return settings_of(self._gateway) | {
            "barnabas.storage.endpoint": f"http://{HOST}:{port}",
            "barnabas.objects.delete.delay.ms": "0",
        }

    # -- faults ------------------------------------------------------------------------------------

    def draw(self, kind: str, chance: Random) -> Fault:
        """Draw a fault of one of ``OBJECT_FAULTS``."""
        if kind == "fail_requests":
            how = f"{chance.choice(list(FAILING))} {chance.randint(1, MOST_FAILED)}"
            return Fault(kind, share=chance.random(), how=how)
        seconds = chance.uniform(*AWAY_S)
        if kind == "crash_objects":
            return Fault(kind, chance.choice((0, 0, seconds)))
        how = chance.choice(REFUSALS) if kind == "refuse_objects" else ""
        return Fault(kind, seconds, how=how)

    def action(self, kind: str) -> Callable[[Fault], None]:
        """Return the function that performs a fault, and heals it, on a thread."""
        found: Callable[[Fault], None] = getattr(self, f"_{kind}")
        return found

    def heal(self) -> None:
        """End the faults of requests that have not come."""
        self._gateway.script.clear()

    def _fail_requests(self, fault: Fault) -> None:
        name, times = fault.how.split()
        failing = FAILING[name]
        self._gateway.script.append(
            scripted_s3.Fault(
                failing.method,
                failing.kind,
                failing.status,
                failing.code,
                failing.keys[int(fault.share * len(failing.keys))],
                times=int(times),
                later=1 + int(MOST_LATE * fault.share),
                seconds=MOST_SLOW_S * fault.share,
            )
        )

    def _crash_objects(self, fault: Fault) -> None:
        self.server.kill()
        time.sleep(fault.seconds)
        self.server.launch()
        self.server.wait_until_ready()

    def _pause_objects(self, fault: Fault) -> None:
        os.kill(self.server.pid, signal.SIGSTOP)
        time.sleep(fault.seconds)
        os.kill(self.server.pid, signal.SIGCONT)

    def _refuse_objects(self, fault: Fault) -> None:
        gateway = self._gateway
        if fault.how == "credentials":
            gateway.accepted_keys.clear()
        else:
            gateway.bucket.exists = False
        time.sleep(fault.seconds)
        gateway.accepted_keys.add(gateway.access_key)
        gateway.bucket.exists = True

    def summary(self) -> str:
        """Return the number of requests by kind."""
        kinds = {
            "uploads": ("PUT", UPLOADS_PREFIX),
            "objects of segments": ("PUT", SEGMENTS_PREFIX),
            "reads": ("GET", ""),
            "listings": ("LIST", ""),
            "deletes": ("DELETE", ""),
        }
        return ", ".join(f"{self._gateway.count(*of)} {name}" for name, of in kinds.items())

    # -- what the store must have ------------------------------------------------------------------

    def complaints(self, pair: Pair) -> list[str]:
        """Return missing objects that a row names, and unused objects that no broker deletes."""
        ((cluster_id,),) = pair.primary.execute("SELECT cluster_id FROM barnabas.cluster")
        root = self.server.objects / BUCKET / "prefix" / str(cluster_id)

        def named() -> set[str]:
            rows = pair.primary.execute("SELECT key FROM barnabas.objects WHERE key IS NOT NULL")
            return {each for (key,) in rows for each in keys_with(key)}

        def found() -> set[str]:
            paths = [path for prefix in BODIES for path in (root / prefix).rglob("*")]
            return {str(path.relative_to(root)) for path in paths if path.is_file()}

        def is_clean() -> bool:
            return len(found() - named()) <= MOST_UNNAMED

        # What is named later than its store was listed, or forgotten before, is not missing.
        missing = named() - found()
        wrong = [f"object {key} is missing" for key in sorted(missing & named() - found())]
        try:
            wait_until(is_clean, seconds=GARBAGE_S, pause_s=0.2)
        except AssertionError:
            wrong.append(f"{len(found() - named())} unused objects are not deleted")
        return wrong


class HurriedMember(LinkedMember):
    """One whose upkeep hardly rests, and that starts again while the store refuses it."""

    refused_starts = 0
    """Number of starts that the object store refused."""

    def command(self) -> list[str]:
        interpreter, _, _, *arguments = super().command()
        return [interpreter, "-m", "tests.postgresql.hurried_broker", *arguments]

    def environment(self) -> dict[str, str]:
        found = super().environment()
        return found | {"PYTHONPATH": f"{found['PYTHONPATH']}{os.pathsep}{ROOT}"}

    def start(self) -> Self:
        for _ in range(MOST_STARTS):
            try:
                return super().start()
            except BrokerDied as died:
                if not any(reason in str(died) for reason in REFUSED_STARTS):
                    raise
                self.refused_starts += 1
        return super().start()
