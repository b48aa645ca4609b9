"""One run: broker, program and inputs are started, disturbed, healed, waited for and judged."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final, Self

from barnabas.broker.admin.offsets import UNCOMMITTED, Offsets
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.proving import judge, schedule
from barnabas.broker.cli.proving.calls import Topics
from barnabas.broker.cli.proving.disturbance import Disturbance
from barnabas.broker.cli.proving.faults import Healer, Planned
from barnabas.broker.cli.proving.identities import Identities, IdRule
from barnabas.broker.cli.proving.instances import Instances
from barnabas.broker.cli.proving.load import Writer
from barnabas.broker.cli.proving.observer import COMMITTED, Observer, is_consumed
from barnabas.broker.cli.proving.passing import Passage
from barnabas.broker.cli.proving.ports import free_port
from barnabas.broker.cli.proving.proxy import Proxy
from barnabas.broker.cli.proving.served import HOST, ServedBroker
from barnabas.broker.cli.proving.story import Story, story_of
from barnabas.broker.cli.proving.timeline import Event, Timeline
from barnabas.broker.cli.proving.wiretap import Wiretap
from barnabas.broker.client.connection import Address
from barnabas.broker.client.topic_reader import ReceivedRecord
from barnabas.storage.runtime.chance import random_below
from barnabas.storage.runtime.clock import monotonic, sleep

REQUEST_S: Final = 10.0
"""Timeout of the command's own requests."""
_LOOK_S: Final = 0.2
_EARLY_ENDS_MAX: Final = 4
"""Processes in turn that may end at once before the program has consumed anything."""
_QUIET_S: Final = 2.0
"""Time without another output after which a consumed input needs no further look."""
_SHOWN_CHARACTERS: Final = 80


@dataclass(frozen=True)
class Options:
    """Options of a run."""

    command: Sequence[str]
    source: str
    target: str
    seconds: float = 30.0
    seed: int = 0
    instances: int = 2
    partitions: int = 3
    rate: float = 50.0
    """Inputs per second, about."""
    rule: IdRule = field(default_factory=IdRule)
    faults: Sequence[str] = tuple(schedule.KINDS)
    expectation: str = judge.EXACTLY
    start_s: float = 60.0
    """Time for the program to consume its first input."""
    settle_s: float = 120.0
    """Time for the program to consume all inputs after the last fault."""


class NothingTried(Exception):
    """The program never consumed an input; ``str()`` is one line, ``output`` its last words."""

    def __init__(self, reason: str, output: str) -> None:
        self.output = output
        super().__init__(reason)


@dataclass
class Proof:
    """Result of a run."""

    options: Options
    schedule: Sequence[Planned]
    verdict: judge.Verdict
    events: Sequence[Event]
    took_s: float
    ended: Sequence[tuple[str, int]] = ()
    """Names and exit codes of processes that ended by themselves."""
    story: Story | None = None
    """Story of the first finding that the expectation does not allow."""


Say = Callable[[str], None]


def prove(options: Options, say: Say = lambda _text: None) -> Proof:
    """Run a program under faults and judge its outputs; raises CommandError, NothingTried."""
    with Run(options, say) as run:
        return run.perform()


class Run:
    """``with Run(options, say) as run:`` everything that it starts ends with it."""

    def __init__(self, options: Options, say: Say) -> None:
        self._options = options
        self._say = say
        self._stack = ExitStack()
        self._timeline = Timeline()
        self._identities = Identities(options.rule, random_below(1 << 32))
        self._planned = schedule.draw(
            options.seed, options.seconds, options.faults, options.instances
        )

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            temporary = tempfile.TemporaryDirectory(prefix="barnabas-prove-")
            directory = Path(stack.enter_context(temporary))
            proxy_port = free_port(HOST)
            self._broker = ServedBroker(directory, free_port(HOST), free_port(HOST), proxy_port)
            stack.callback(self._broker.kill)
            self._say("starting a broker")
            self._broker.start()
            options = self._options
            cluster = stack.enter_context(self._cluster())
            self._observer = Observer(cluster, options.source, options.target)
            self._observer.create(options.partitions)
            self._starts = self._observer.ends(options.target)
            self._source_starts = self._observer.ends(options.source)
            self._instances = Instances(
                options.command, f"{HOST}:{proxy_port}", directory, self._timeline
            )
            stack.callback(self._instances.close)
            self._wiretap = Wiretap(
                Topics(options.source, options.target, self._observer.topic_ids()),
                lambda: self._instances.sessions,
                self._timeline,
                proxy_port,
            )
            proxy = Proxy(self._broker.port, proxy_port, options.seed, self._wiretap.tap)
            stack.enter_context(proxy)
            self._passage = Passage(cluster, self._wiretap, self._instances, self._timeline)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def _cluster(self) -> Cluster:
        addresses: list[Address] = [self._broker.address]
        return Cluster(addresses, REQUEST_S)

    def perform(self) -> Proof:
        """Run the program to its verdict."""
        options = self._options
        begun_s = monotonic()
        with self._writing():
            for number in range(1, options.instances + 1):
                self._instances.start(number)
            self._say("waiting for the first input to be consumed")
            self._wait_for_start()
            self._say(f"disturbing the program for {options.seconds:g} s, seed {options.seed}")
            disturbance = Disturbance(
                self._instances, self._timeline, self._broker, self._wiretap, self._passage
            )
            healer = Healer(disturbance, Random(f"{options.seed} cures"))  # noqa: S311
            healer.follow(self._planned, options.seconds)
        self._say("waiting until all inputs are consumed and no transaction is open")
        self._settle()
        verdict = judge.judge(self._observed(), options.expectation)
        took_s = monotonic() - begun_s
        events = list(self._timeline.events)
        story = None
        if verdict.violations:
            calls = list(self._wiretap.calls)
            first = verdict.violations[0]
            story = story_of(first, calls, events, options.source, options.target)
        return Proof(options, self._planned, verdict, events, took_s, self._instances.ended, story)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Write inputs during the block."""
        options = self._options
        self._writer = Writer(
            self._cluster(),
            options.source,
            self._identities.record,
            name=f"barnabas-prove-{self._identities.token}",
            rate=options.rate,
            seed=options.seed,
        )
        self._writer.start()
        try:
            yield
        finally:
            self._writer.stop()

    def _wait_for_start(self) -> None:
        """Wait for the first effect of the program; raises NothingTried."""
        until_s = monotonic() + self._options.start_s
        while not self._has_begun():
            self._instances.supervise()
            ended = self._instances.ended
            words = self._instances.last_words(1)
            if len(ended) >= _EARLY_ENDS_MAX:
                reason = f"the program ended {len(ended)} times, exit code {ended[-1][1]}, "
                raise NothingTried(f"{reason}before it had consumed an input", words)
            if monotonic() > until_s:
                reason = f"consumed nothing from {self._options.source} in"
                raise NothingTried(f"the program {reason} {self._options.start_s:g} s", words)
            sleep(_LOOK_S)

    def _has_begun(self) -> bool:
        if self._observer.ends(self._options.target) != self._starts:
            return True
        return any(self._observer.committed().values())

    def _settle(self) -> None:
        """Wait until the inputs are consumed and nothing is open, but not longer than allowed."""
        until_s = monotonic() + self._options.settle_s
        ends, quiet_since_s = self._observer.ends(self._options.target), monotonic()
        while monotonic() < until_s:
            self._instances.supervise()
            self._passage.step()
            sleep(_LOOK_S)
            now_ends = self._observer.ends(self._options.target)
            if now_ends != ends or self._observer.open_transactions():
                ends, quiet_since_s = now_ends, monotonic()
            elif monotonic() - quiet_since_s >= _QUIET_S and self._is_consumed():
                return

    def _is_consumed(self) -> bool:
        """Return whether the committed offsets are past the last input."""
        last: Offsets = {}
        for each in self._read_inputs(COMMITTED):
            last[self._options.source, each.partition] = each.offset + 1
        return is_consumed(list(self._observer.committed().values()), last)

    # ------------------------------------------------------------------------------ the evidence

    def _observed(self) -> judge.Observed:
        visible = {(each.partition, each.offset) for each in self._read_inputs(COMMITTED)}
        inputs = [
            judge.Input(
                identity, each.partition, each.offset, each.key,
                (each.partition, each.offset) in visible,
            )
            for each in self._read_inputs(UNCOMMITTED)
            for identity in self._identities.of(each)[:1]
        ]  # fmt: skip
        target = self._options.target
        outputs = [
            judge.Output(each.partition, each.offset, tuple(self._identities.of(each)), _text(each))
            for each in self._observer.read(target, self._starts, COMMITTED)
        ]
        groups = self._observer.committed().values()
        offsets: dict[int, int] | None = None
        for group in groups:
            offsets = offsets or {}
            for (_, partition), offset in group.items():
                offsets[partition] = max(offsets.get(partition, 0), offset)
        return judge.Observed(inputs, outputs, offsets)

    def _read_inputs(self, isolation: str) -> Iterator[ReceivedRecord]:
        return self._observer.read(self._options.source, self._source_starts, isolation)


def _text(record: ReceivedRecord) -> str:
    key = "" if record.key is None else f"{record.key.decode(errors='replace')}: "
    value = "null" if record.value is None else record.value.decode(errors="replace")
    text = f"{key}{value}"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
