"""One run: broker, program and inputs are started, disturbed, healed, waited for and judged."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final, Self

from barnabas.broker.admin.offsets import UNCOMMITTED, Offsets
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.proving import judge, schedule
from barnabas.broker.cli.proving.calls import Topics
from barnabas.broker.cli.proving.disturbance import Disturbance
from barnabas.broker.cli.proving.faults import Healer, Planned
from barnabas.broker.cli.proving.guard import Guard
from barnabas.broker.cli.proving.identities import Identities, IdRule, Made, Replayed, replayed
from barnabas.broker.cli.proving.instances import Instances
from barnabas.broker.cli.proving.load import Writer
from barnabas.broker.cli.proving.observer import COMMITTED, Observer, is_consumed
from barnabas.broker.cli.proving.own_judge import OwnJudge
from barnabas.broker.cli.proving.passing import Passage
from barnabas.broker.cli.proving.proxy import Proxy, Tap
from barnabas.broker.cli.proving.rerouting import Rerouted
from barnabas.broker.cli.proving.schedule import OF_THE_BROKER
from barnabas.broker.cli.proving.served import HOST, ServedBroker, free_port, package_environment
from barnabas.broker.cli.proving.story import Story, story_of
from barnabas.broker.cli.proving.timeline import Event, Timeline
from barnabas.broker.cli.proving.watch import Watch
from barnabas.broker.cli.proving.wiretap import Wiretap
from barnabas.broker.cli.records.record_text import NewRecord
from barnabas.broker.client.connection import Address
from barnabas.broker.client.topic_reader import ReceivedRecord
from barnabas.broker.config.addresses import address_text
from barnabas.storage.runtime.chance import random_below
from barnabas.storage.runtime.clock import monotonic, sleep

REQUEST_S: Final = 10.0
"""Timeout of the command's own requests."""
_INTERVAL_S: Final = 0.2
_EARLY_ENDS_MAX: Final = 4
"""Number of processes, one after the other, that may end before an input was consumed."""
_QUIET_S: Final = 2.0
"""Time without another output after which a consumed input counts as final."""
_SETTLE_MOST: Final = 5
"""Multiple of ``Options.settle_s`` that a slow program gets at most."""
_IDLE_SHARE: Final = 0.25
"""Share of ``Options.settle_s`` after which a program that has done all commits no more offsets."""
_FAULTS_S: Final = 20.0
"""Time of faults that a run has at least, so that the requests show the cause of a finding."""
_TABLE_RATE: Final = 5000.0
"""Records of a table per second, about."""
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
    """Time, after the last fault, in which the program must consume all inputs or make progress."""
    servers: Sequence[Address] = ()
    """Brokers that exist, in place of one that the run starts: only the program is disturbed."""
    own_judge: OwnJudge | None = None
    own_inputs: Callable[[int], NewRecord] | None = None
    """Makes the input of a number for ``own_judge``."""
    tables: Mapping[str, Sequence[NewRecord]] = field(default_factory=dict)
    """Records of other topics that the program reads, written before it starts."""
    replay: str | None = None
    """Path of a file with records that are the inputs."""


class NothingTried(Exception):
    """The program never consumed an input; ``str()`` is one line, ``output`` its last words.

    The last words are a note, too, so that a failed test shows them.
    """

    def __init__(self, reason: str, output: str) -> None:
        self.output = output
        super().__init__(reason)
        self.add_note(output)


@dataclass
class Proof:
    """Result of a run."""

    options: Options
    schedule: Sequence[Planned]
    """Planned faults; ``performed`` has those that happened."""
    verdict: judge.Verdict
    events: Sequence[Event]
    took_s: float
    ended: Sequence[tuple[str, int]] = ()
    """Names and exit codes of processes that ended by themselves."""
    story: Story | None = None
    """Story of the first finding that the expectation does not allow."""
    performed: Sequence[Planned] = ()
    """Faults that harmed something, each with its time in the run."""


PrintLine = Callable[[str], None]


def prove(options: Options, print_line: PrintLine = lambda _text: None) -> Proof:
    """Run a program under faults and judge its outputs; raises CommandError, NothingTried."""
    with Run(options, print_line) as run:
        return run.perform()


class Run:
    """``with Run(options, print_line) as run:`` everything that it starts ends with it."""

    def __init__(
        self, options: Options, print_line: PrintLine, planned: Sequence[Planned] | None = None
    ) -> None:
        """``planned`` is a schedule to use instead of the seed's. Raises CommandError."""
        self._options = options
        self._print_line = print_line
        self._stack = ExitStack()
        self._timeline = Timeline()
        self._identities = _identities(options)
        kinds = [
            each for each in options.faults if not options.servers or each not in OF_THE_BROKER
        ]
        if planned is None:
            planned = schedule.draw(options.seed, options.seconds, kinds, options.instances)
        self._planned = planned
        self._broker: ServedBroker | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            directory = stack.enter_context(_temporary_directory())
            stack.enter_context(Guard(directory, package_environment()))
            if not self._options.servers:
                self._start_broker(directory, stack)
            options = self._options
            cluster = stack.enter_context(self._cluster())
            self._observer = Observer(cluster, options.source, options.target)
            names = [options.source, options.target, *options.tables]
            self._observer.create(names, options.partitions)
            for topic, records in options.tables.items():
                self._fill(topic, records)
            self._starts = self._observer.ends(options.target)
            self._source_starts = self._observer.ends(options.source)
            self._committed_before = self._observer.committed()
            ports = {address: free_port(HOST) for address in self._observer.brokers()}
            servers = ",".join(address_text(HOST, port) for port in ports.values())
            self._instances = Instances(options.command, servers, directory, self._timeline)
            stack.callback(self._instances.close)
            self._start_proxies(ports, stack)
            self._passage = Passage(cluster, self._wiretap, self._instances, self._timeline)
            self._stack = stack.pop_all()
        return self

    def _fill(self, topic: str, records: Sequence[NewRecord]) -> None:
        """Write a table, in transactions; raises CommandError."""
        name = f"barnabas-prove-{self._identities.token}-{topic}"
        writer = Writer(
            self._cluster(), topic, records.__getitem__,
            name=name, rate=_TABLE_RATE, seed=self._options.seed, limit=len(records),
        )  # fmt: skip
        writer.start()
        writer.finish()

    def _start_broker(self, directory: Path, stack: ExitStack) -> None:
        broker = ServedBroker(directory, free_port(HOST))
        stack.callback(broker.kill)
        self._print_line("starting a broker")
        broker.start()
        self._broker = broker

    def _start_proxies(self, ports: Mapping[Address, int], stack: ExitStack) -> None:
        """Start a proxy before each broker; ``ports`` has its port by the broker's address."""
        options = self._options
        topics = Topics(options.source, options.target, self._observer.topic_ids())
        wiretap = Wiretap(topics, lambda: self._instances.marks, self._timeline)

        def tap(port: int) -> Callable[[int], Tap]:
            return lambda client_port: Rerouted(wiretap.tap(client_port, port), ports)

        for address, port in ports.items():
            stack.enter_context(Proxy(address, port, options.seed, tap(port)))
        self._wiretap = wiretap

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def _cluster(self) -> Cluster:
        own = [] if self._broker is None else [self._broker.address]
        return Cluster(list(self._options.servers) or own, REQUEST_S)

    def perform(self) -> Proof:
        """Run the program to its verdict."""
        options = self._options
        begun_s = monotonic()
        with self._writing():
            for number in range(1, options.instances + 1):
                self._instances.start(number)
            self._print_line("waiting for the first input to be consumed")
            self._wait_for_start()
            self._print_line(
                f"disturbing the program for {options.seconds:g} s, seed {options.seed}"
            )
            disturbance = Disturbance(
                self._instances, self._timeline, self._broker, self._wiretap, self._passage
            )
            self._disturb(disturbance)
        self._print_line("waiting until all inputs are consumed and no transaction is open")
        self._settle()
        verdict = self._verdict()
        if not verdict.inputs:
            raise NothingTried("no input could be written", "")
        took_s = monotonic() - begun_s
        events = list(self._timeline.events)
        story = self._story(verdict.violations, events) if verdict.violations else None
        return Proof(
            options, self._planned, verdict, events, took_s, self._instances.ended, story,
            disturbance.performed,
        )  # fmt: skip

    def _disturb(self, disturbance: Disturbance) -> None:
        """Perform the schedule, or the part of it after which a finding is certain."""
        options = self._options
        cures, until_s = Random(f"{options.seed} cures"), monotonic() + _FAULTS_S  # noqa: S311
        with ExitStack() as stack:
            watch = None
            if options.own_judge is None:
                cluster = self._cluster()
                observer = Observer(cluster, options.source, options.target)
                starts = self._source_starts, self._starts
                ids_of = self._identities.of
                watch = Watch(observer, cluster.close, ids_of, starts, options.expectation)
                stack.enter_context(watch)

            def is_enough() -> bool:
                return watch is not None and bool(watch.found) and monotonic() > until_s

            Healer(disturbance, cures, is_enough=is_enough).follow(self._planned, options.seconds)
        if watch is not None and watch.found:
            self._print_line(f"found: {watch.found}")

    def _story(self, violations: Sequence[judge.Finding], events: Sequence[Event]) -> Story:
        """Return the story of the first finding, of the last one if old requests were left out."""
        found = violations[0]
        if self._wiretap.is_full:
            found = [each for each in violations if each.kind == found.kind][-1]
        calls = self._wiretap.calls
        return story_of(found, calls, events, self._options.source, self._options.target)

    def _verdict(self) -> judge.Verdict:
        observed, own_judge = self._observed(), self._options.own_judge
        if own_judge is None:
            return judge.judge(observed, self._options.expectation)
        return judge.judge_by(self._problems(own_judge), observed, self._options.expectation)

    def _problems(self, own_judge: OwnJudge) -> list[str]:
        """Return the problems that the user's function finds; raises CommandError."""
        inputs = list(self._read_inputs(COMMITTED))
        outputs = list(self._read_outputs())
        try:
            return list(own_judge(inputs, outputs) or ())
        except Exception as error:
            raise CommandError(f"the function judge failed: {error!r}") from error

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
            limit=len(self._identities) if isinstance(self._identities, Replayed) else None,
        )
        self._writer.start()
        try:
            yield
        except BaseException:
            self._writer.abandon()
            raise
        self._writer.stop()
        if left := self._writer.left:
            self._print_line(
                f"{left} records of {options.replay} were not written in time: "
                "--rate and --seconds decide how many are"
            )

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
            sleep(_INTERVAL_S)

    def _has_begun(self) -> bool:
        if self._observer.ends(self._options.target) != self._starts:
            return True
        return self._observer.committed() != self._committed_before

    def _settle(self) -> None:
        """Wait until the inputs are consumed and nothing is open, but not longer than allowed.

        A slow program gets more time while its committed offsets or its outputs advance.
        """
        before = -1
        for _ in range(_SETTLE_MOST):
            advanced = self._advanced()
            if advanced <= before or self._is_settled_within(self._options.settle_s):
                return
            before = advanced

    def _advanced(self) -> int:
        """Return a number that grows with committed offsets of the input and with outputs.

        It also grows in a transaction, so that none is judged while it is open.
        """
        offsets = [*self._observer.committed().values(), self._observer.ends(self._options.target)]
        return self._wiretap.works + sum(sum(each.values()) for each in offsets)

    def _is_settled_within(self, within_s: float) -> bool:
        """Wait until the inputs are consumed, or until nothing can come any more."""
        until_s = monotonic() + within_s
        idle_s = _IDLE_SHARE * self._options.settle_s
        ends, quiet_since_s = self._observer.ends(self._options.target), monotonic()
        advanced, idle_since_s = self._advanced(), quiet_since_s
        while monotonic() < until_s:
            self._instances.supervise()
            self._passage.step()
            sleep(_INTERVAL_S)
            now_ends = self._observer.ends(self._options.target)
            if now_ends != ends or self._observer.open_transactions():
                ends, quiet_since_s = now_ends, monotonic()
            elif monotonic() - quiet_since_s >= _QUIET_S:
                if self._is_consumed():
                    return True
                before, advanced, quiet_since_s = advanced, self._advanced(), monotonic()
                if advanced != before:
                    idle_since_s = quiet_since_s
                elif quiet_since_s - idle_since_s >= idle_s and self._has_done_all():
                    return True
        return False

    def _has_done_all(self) -> bool:
        """Return whether the program has got all inputs, and written all outputs.

        Then a group whose offsets still do not advance never will.
        """
        living = {each.name for each in self._instances.processes}
        ends = {partition: end for (_, partition), end in self._ends_of_inputs().items()}
        return self._wiretap.has_read_all(ends, living) and self._has_all_outputs()

    def _ends_of_inputs(self) -> Offsets:
        """Return the offsets after the last committed input of each partition."""
        inputs = self._read_inputs(COMMITTED)
        return {(self._options.source, each.partition): each.offset + 1 for each in inputs}

    def _is_consumed(self) -> bool:
        """Return whether the committed offsets of each group are past the last input.

        Without a group that commits offsets, return whether all outputs exist.
        """
        groups = list(self._groups().values())
        if groups:
            return is_consumed(groups, self._ends_of_inputs())
        return self._has_all_outputs()

    def _has_all_outputs(self) -> bool:
        """Return whether each input has an output, or whether the user's function finds nothing."""
        if (own_judge := self._options.own_judge) is not None:
            try:
                return not self._problems(own_judge)
            except CommandError:  # The function may need all outputs.
                return False
        inputs = self._read_inputs(COMMITTED)
        wanted = {identity for each in inputs for identity in self._identities.of(each)[:1]}
        return wanted <= {
            identity for each in self._read_outputs() for identity in self._identities.of(each)
        }

    def _groups(self) -> dict[str, Offsets]:
        """Return the groups that have committed offsets of the input during the run."""
        before = self._committed_before
        found = self._observer.committed()
        return {group: offsets for group, offsets in found.items() if before.get(group) != offsets}

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
        outputs = [
            judge.Output(each.partition, each.offset, tuple(self._identities.of(each)), _text(each))
            for each in self._read_outputs()
        ]
        groups = {
            name: {partition: offset for (_, partition), offset in offsets.items()}
            for name, offsets in self._groups().items()
        }
        return judge.Observed(inputs, outputs, groups)

    def _read_inputs(self, isolation: str) -> Iterator[ReceivedRecord]:
        return self._observer.read(self._options.source, self._source_starts, isolation)

    def _read_outputs(self) -> Iterator[ReceivedRecord]:
        return self._observer.read(self._options.target, self._starts, COMMITTED)


@contextmanager
def _temporary_directory() -> Iterator[Path]:
    """Make a directory for the block; raises CommandError."""
    try:
        temporary = tempfile.TemporaryDirectory(prefix="barnabas-prove-")
    except OSError as error:
        reason = error.strerror or error
        raise CommandError(f"the temporary directory cannot be created: {reason}") from None
    with temporary as directory:
        yield Path(directory)


def _identities(options: Options) -> Identities | Replayed | Made:
    token = random_below(1 << 32)
    if options.own_inputs is not None and options.replay is None:
        return Made(options.own_inputs, token)
    if options.replay is None:
        return Identities(options.rule, token)
    try:
        return replayed(options.replay, options.rule, token)
    except OSError as error:
        raise CommandError(f"{options.replay}: {error.strerror or error}", USAGE) from None
    except ValueError as error:
        raise CommandError(str(error), USAGE) from None


def _text(record: ReceivedRecord) -> str:
    key = "" if record.key is None else f"{record.key.decode(errors='replace')}: "
    value = "null" if record.value is None else record.value.decode(errors="replace")
    text = f"{key}{value}"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
