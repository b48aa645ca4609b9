"""A program at work while it and the broker are killed, and the judgement of what it has done."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from barnabas.broker.cli.proving.instances import Instances
from barnabas.broker.cli.proving.timeline import Timeline
from tests.counterparts.broker_process import HOST, BrokerProcess
from tests.history.model import COMMITTED, History, Read
from tests.interop.administration import create
from tests.interop.programs.copies import (
    INPUT,
    INPUTS,
    OUTPUT,
    OUTPUTS,
    PARTITIONS,
    duties,
)
from tests.seeds import SEED
from tests.waiting import wait_until
from tests.workload.drivers.confluent import Look, consumer, taken
from tests.workload.journal import operations
from tests.workload.judge import read_at_the_end, wait_for_ends
from tests.workload.plans import SENT_AT_ONCE
from tests.workload.settings import Kind, Settings
from tests.workload.threads import ThreadClient

REST_S = 0.03
"""The longest time between two sends of three records: about 100 records in a second."""
PROGRESS = 100
"""Records that the program copies at least between two faults."""
MOST_AHEAD = 300
"""Records without an output at which the sender waits for the program."""
WAIT_S = 240
LOOK_S = 0.1
MOST_RECORDS = 500
MOST_ENDS = 6
"""More often no program ends by itself because of a broker that is down for a moment."""
PROGRAM = 1
"""Number of the only instance of the program."""
FAULTS = ("program", "broker", "both", "program", "broker", "program")


class Outputs:
    """The outputs that a `read_committed` consumer has got."""

    def __init__(self, servers: str) -> None:
        self._consumer = consumer(servers, COMMITTED, dict.fromkeys(OUTPUTS, 0))
        self._values: set[str] = set()

    def count(self) -> int:
        """Read the new records; return the number of different values so far."""
        reads = map(taken, self._consumer.consume(MOST_RECORDS, LOOK_S))
        self._values.update(read.value for read in reads if isinstance(read, Read))
        return len(self._values)

    def close(self) -> None:
        self._consumer.close()


class Life:
    """`with Life(...) as life:` a sender and a program, which end with it."""

    def __init__(
        self,
        broker: BrokerProcess,
        group: str,
        command: Callable[[str, Path], Sequence[str]],
        directory: Path,
    ) -> None:
        self.broker_kills = self.program_kills = 0
        self._broker = broker
        self._group = group
        servers = broker.bootstrap_servers
        for topic in (INPUT, OUTPUT):
            create(servers, topic, partitions=PARTITIONS)
        settings = Settings.of(
            Kind("sender", "confluent"),
            *("sender", servers, SEED),
            topics=(INPUT,),
            partitions=PARTITIONS,
            rest_s=REST_S,
        )
        self._sender = ThreadClient(settings)
        self._outputs = Outputs(servers)
        self._look = Look(servers)
        self._chance = random.Random(SEED)
        self.program = Instances(command(servers, directory), servers, directory, Timeline())
        self.program.start(PROGRAM)

    def __enter__(self) -> Self:
        self._sender.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.program.close()
        self._sender.is_stopping = True
        self._outputs.close()

    def run(self) -> History:
        """Perform all faults, let the program finish, and return the history."""
        for fault in FAULTS:
            self._wait_for_progress()
            time.sleep(self._chance.uniform(0, 0.5))
            self._perform(fault)
        self._wait_for_progress()
        self._sender.stop()
        assert self._sender.error is None, self._sender.error
        sent = operations(self._sender.events)
        count = sum(len(operation.writes) for operation in sent)
        self._wait(lambda: self._outputs.count() >= count)
        self._wait(self._has_committed_all)
        self._kill_program()
        wait_for_ends([(HOST, self._broker.port)])
        history = [*sent, *duties(sent, self._group), *self._read_at_the_end("final")]
        self._kill_broker()
        self._broker.restart()
        return history + self._read_at_the_end("after-kill")

    def _perform(self, fault: str) -> None:
        if fault != "program":
            self._kill_broker()
        if fault != "broker":
            self._kill_program()
            self.program.start(PROGRAM)
        if fault != "program":
            # A program that was killed as well starts while there is no broker.
            time.sleep(self._chance.uniform(0, 2))
            self._broker.restart()

    def _kill_program(self) -> None:
        self.program_kills += self.program.kill(PROGRAM)

    def _kill_broker(self) -> None:
        self._broker.kill()
        self.broker_kills += 1

    def _wait_for_progress(self) -> None:
        """Wait for outputs of records that were sent after this call."""
        enough = self._sender.done * SENT_AT_ONCE + PROGRESS
        self._wait(lambda: self._outputs.count() >= enough)

    def _has_committed_all(self) -> bool:
        ends = self._look.ends(INPUTS, COMMITTED)
        committed = self._look.committed(self._group, INPUTS)
        return all(each.offset == ends[each.place] for each in committed)

    def _wait(self, condition: Callable[[], bool]) -> None:
        def is_so() -> bool:
            self.program.supervise()
            ends = self.program.ended
            assert len(ends) < MOST_ENDS, f"it ends again and again: {self.described()}"
            ahead = self._sender.done * SENT_AT_ONCE - self._outputs.count()
            self._sender.is_held = ahead > MOST_AHEAD
            return condition()

        wait_until(is_so, self.described, seconds=WAIT_S)

    def described(self) -> str:
        """Return the progress of the program and the end of its output."""
        committed = self._look.committed(self._group, INPUTS)
        return f"{self._outputs.count()} outputs, {committed}: {self.program.last_words(PROGRAM)}"

    def _read_at_the_end(self, name: str) -> History:
        groups = {self._group: INPUTS}
        return read_at_the_end(self._look, name, INPUTS + OUTPUTS, groups, (COMMITTED,))
