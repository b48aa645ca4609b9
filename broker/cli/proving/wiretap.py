"""Wiretap of a run: decodes the requests of a program, and performs faults at chosen requests."""

from __future__ import annotations

import signal
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from barnabas.broker.api.refusals import mirror, response_class_of
from barnabas.broker.cli.proving.calls import (
    COMMIT,
    COMMIT_IN_TRANSACTION,
    END,
    FETCH,
    INIT,
    JOIN,
    LEAVE,
    NEW_BEAT,
    PRODUCE,
    WATCHED,
    Call,
    Topics,
    positions_of,
    requested,
    responded,
)
from barnabas.broker.cli.proving.instances import is_of
from barnabas.broker.cli.proving.owners import owner_of
from barnabas.broker.cli.proving.proxy import LENGTH_BYTES, Act, Stream
from barnabas.broker.cli.proving.timeline import Timeline
from barnabas.protocol.api import AnyApi
from barnabas.protocol.errors import ErrorCode, KafkaError, Malformed
from barnabas.protocol.header import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    response_frame,
)
from barnabas.protocol.messages import ENTRIES, api_for_key
from barnabas.storage.runtime.threads import new_lock

CALLS_MAX: Final = 25_000
"""Requests that are kept, the newest ones: about 25 MB."""
CHANGES: Final = frozenset({PRODUCE, END, COMMIT, COMMIT_IN_TRANSACTION})
"""Requests at which faults happen."""
LOADED: Final = frozenset({"InitProducerId", "EndTxn", "AddOffsetsToTxn", "TxnOffsetCommit"})
"""Requests that a coordinator rejects while it loads its state."""
_TAKEN_S: Final = 0.3
"""Time from a commit of offsets to the end of its transaction."""
_ATTEMPTS_MAX: Final = 20
"""Requests of a connection after which the search for its process ends."""
_NAMES: Final = {entry.key: entry.name for entry in ENTRIES.values()}


class Moment(NamedTuple):
    """A request of an instance at which a fault happens."""

    api: str
    number: int
    """Number of the instance."""
    act: Act
    signal: signal.Signals | None = None
    """Signal for the process, SIGKILL or SIGSTOP, or ``None`` to harm only the connection."""
    reason: str = ""
    process: str = ""
    """Name of one process of the instance, or empty for any: zombies have the same number."""

    def fits(self, call: Call) -> bool:
        """Return whether a fault happens at a request."""
        is_meant = (
            call.process == self.process if self.process else is_of(call.process, self.number)
        )
        is_meant = is_meant and (call.api != END or call.commits)
        return call.api == self.api and is_meant


class Wiretap:
    """Taps of all connections of a run.

    It keeps the requests that a story or a cause can need: those that change something, and others
    whose response has records, an error or another generation.
    """

    def __init__(
        self,
        topics: Topics,
        marks: Callable[[], Mapping[str, str]],
        timeline: Timeline,
    ) -> None:
        """``marks`` returns the names of processes by their marks."""
        self.topics = topics
        self._kept: deque[Call] = deque(maxlen=CALLS_MAX)
        self.on_moment: Callable[[str, signal.Signals, str], None] = lambda *_arguments: None
        """Sends a signal to the process of a name, for a reason."""
        self.now_s = timeline.now_s
        self.note = timeline.note
        self._marks = marks
        self.members: dict[str, Call] = {}
        """The last membership of each process."""
        self.owners: dict[str, str] = {}
        """The process that has used a transactional id last."""
        self._lock = new_lock()
        self._moments: list[Moment] = []
        self._tried: Counter[tuple[str, Act, signal.Signals | None]] = Counter()
        self._loading: str = ""
        self._used: set[str] = set()
        self._reads: dict[str, set[int]] = {}
        """Partitions of the input that each process has read."""
        self.works = 0
        """Writes of outputs and commits of offsets that have succeeded."""
        self._positions: dict[int, tuple[str, int]] = {}
        """The process that has read each partition of the input last, and its offset."""
        self._committed: dict[int, Call] = {}
        """The last commit of offsets of each partition."""

    @property
    def calls(self) -> list[Call]:
        """The kept requests, in their order."""
        return sorted(self._kept, key=lambda each: each.at_s)

    @property
    def is_full(self) -> bool:
        """Whether the oldest requests have been left out."""
        return len(self._kept) == CALLS_MAX

    def tap(self, client_port: int, proxy_port: int) -> ConnectionTap:
        """Return the tap of a connection between two ports."""
        return ConnectionTap(self, lambda: owner_of(client_port, proxy_port, self._marks()))

    # -------------------------------------------------------------------------------------- faults

    def arm(self, moment: Moment) -> bool:
        """Perform a fault at the next request that fits; return False if its instance has one."""
        with self._lock:
            if any(each.number == moment.number for each in self._moments):
                return False
            self._moments.append(moment)
            self._tried[moment.api, moment.act, moment.signal] += 1
            return True

    def is_armed(self, moment: Moment) -> bool:
        """Whether a fault waits for its request."""
        return moment in self._moments

    def chosen(self, share: float, act: Act, number: signal.Signals | None = None) -> str:
        """Return an API that changes something and that the program has used.

        Among those at which the fewest such faults were tried, ``share`` decides. So each request
        gets each fault several times in a run, and the one that matters is among them.
        """
        used = sorted(self._used) or [PRODUCE]
        fewest = min(self._tried[each, act, number] for each in used)
        rare = [each for each in used if self._tried[each, act, number] == fewest]
        return rare[int(share * len(rare))]

    def disarm(self, moment: Moment) -> bool:
        """Return whether a fault has not happened, and does not happen any more."""
        with self._lock:
            was_armed = moment in self._moments
            if was_armed:
                self._moments.remove(moment)
            return was_armed

    def load_coordinator(self, number: int) -> None:
        """Reject an instance's requests to coordinators by COORDINATOR_LOAD_IN_PROGRESS."""
        self._loading = str(number)

    def end_loading(self) -> None:
        """Forward all requests again."""
        self._loading = ""

    def taken(self, call: Call) -> Moment | None:
        """Return the moment of a request, which then has passed."""
        with self._lock:
            moment = next((each for each in self._moments if each.fits(call)), None)
            if moment is not None:
                self._moments.remove(moment)
            return moment

    def add(self, call: Call) -> None:
        """Keep a request that changes something, also if no response comes."""
        if _changes(call):
            self._kept.append(call)
        if call.process and call.api in CHANGES:
            self._used.add(call.api)

    def answered(self, call: Call) -> None:
        """Note the membership, the transactional ID and the offsets of a process."""
        if not _changes(call) and self._is_relevant(call):
            self._kept.append(call)
        if call.errors:
            return
        if call.read:
            self._reads.setdefault(call.process, set()).update(call.read)
        self.works += bool(call.process and (call.counts or call.offsets))
        for partition in call.offsets:
            self._committed[partition] = call
        if call.api == INIT and call.transactional_id and call.process:
            self.owners[call.transactional_id] = call.process
        elif call.api == INIT:  # Its owner is not known, and may live.
            self.owners.pop(call.transactional_id, None)
        elif call.api == LEAVE or (call.api == NEW_BEAT and call.generation < 0):
            self.members.pop(call.process, None)
        elif call.api in {JOIN, NEW_BEAT}:
            self.members[call.process] = call

    def _is_relevant(self, call: Call) -> bool:
        """Return whether the response of a request that changes nothing belongs to a story."""
        before = self.members.get(call.process)
        is_new = before is None or before.generation != call.generation
        is_member = call.api == JOIN or (call.api == NEW_BEAT and is_new)
        return bool(call.errors or call.read) or is_member

    def happened(self, call: Call, moment: Moment) -> None:
        """Harm the process of the request that a fault has waited for."""
        if moment.signal is not None:
            self.on_moment(call.process, moment.signal, moment.reason)
        else:
            when = "before" if moment.act is Act.CUT else "after"
            self.note(call.process, f"its connection was cut {when} {call.api} took effect")

    def has_read(self, process: str) -> bool:
        """Return whether a process has got inputs."""
        return process in self._reads

    def read_from(self, process: str, positions: Mapping[int, int]) -> None:
        """Note the offsets from which a process reads partitions of the input."""
        for partition, offset in positions.items():
            self._positions[partition] = process, offset

    def has_read_all(self, ends: Mapping[int, int], living: Collection[str]) -> bool:
        """Return whether living processes have got the inputs of each partition up to its end."""
        nothing = "", -1
        found = {each: self._positions.get(each, nothing) for each in ends}
        return all(
            found[partition][0] in living and found[partition][1] >= end
            for partition, end in ends.items()
        )

    def has_successor(self, process: str, since_s: float) -> bool:
        """Return whether another process has committed offsets of a partition of this one."""
        commits = [self._committed.get(each) for each in self._reads.get(process, ())]
        return any(
            each is not None
            and each.process != process
            and since_s < each.at_s < self.now_s() - _TAKEN_S
            for each in commits
        )

    def is_loading_for(self, call: Call) -> bool:
        """Return whether the coordinator of a request loads its state."""
        loading = self._loading
        return bool(loading) and call.api in LOADED and is_of(call.process, int(loading))


class ConnectionTap:
    """Decodes the requests and responses of one connection."""

    def __init__(self, wiretap: Wiretap, owner: Callable[[], str]) -> None:
        """``owner`` returns the name of the process, or an empty text while it is not found."""
        self._wiretap = wiretap
        self._owner = owner
        self._process = ""
        self._attempts = 0
        self._from_client = Stream(LENGTH_BYTES)
        self._from_broker = Stream(LENGTH_BYTES)
        self._pending: dict[int, tuple[Call, AnyApi]] = {}
        self._outstanding = 0
        """Requests whose response has not arrived."""
        self._is_broken = False

    def requests(self, data: bytes) -> tuple[Act, bytes]:
        """Decode requests; return what the proxy does, and a response in place of the broker's."""
        act, response = Act.FORWARD, b""
        # A rejection replaces a whole request: nothing else may be in these bytes. It would precede
        # the responses to earlier requests, which clients expect first.
        begins = self._from_client.is_empty
        for frame in self._frames(self._from_client, data):
            is_alone = begins and len(data) == len(frame) + LENGTH_BYTES
            call, response = self._request(frame, can_reject=is_alone and not self._outstanding)
            if call is None:
                continue
            moment = self._wiretap.taken(call)
            if moment is not None:
                act = moment.act
                self._wiretap.happened(call, moment)
        return act, response

    def responses(self, data: bytes) -> bytes:
        """Decode responses; return them as they are."""
        for frame in self._frames(self._from_broker, data):
            self._outstanding -= 1
            correlation_id = int.from_bytes(frame[:LENGTH_BYTES], "big", signed=True)
            found = self._pending.pop(correlation_id, None)
            if found is not None:
                self._response(frame, *found)
        return data

    def closed(self) -> None:
        """Forget the requests without a response."""
        self._pending.clear()

    def _named(self) -> str:
        """Return the name of the process; the tables of the system may miss a new connection."""
        if not self._process and self._attempts < _ATTEMPTS_MAX:
            self._attempts += 1
            self._process = self._owner()
        return self._process

    def _frames(self, stream: Stream, data: bytes) -> Iterator[memoryview]:
        """Add bytes; remove and yield whole frames."""
        if self._is_broken:
            return
        stream.add(data)
        try:
            yield from stream.frames()
        except Malformed:
            self._end_reading()

    def _end_reading(self) -> None:
        """Keep no bytes of a connection that cannot be read: it may not be Kafka's protocol."""
        self._is_broken = True
        self._from_client.clear()
        self._from_broker.clear()
        self._pending.clear()

    def _request(self, frame: memoryview, *, can_reject: bool) -> tuple[Call | None, bytes]:
        """Return a watched request, and the bytes of its rejection if its coordinator loads."""
        self._outstanding += 1
        try:
            header, position = decode_request_header(frame)
            name = _NAMES.get(header.api_key, "")
            if name not in WATCHED:
                return None, b""
            api = api_for_key(header.api_key)
            call = Call(name, self._named(), self._wiretap.now_s(), header.api_version)
            request = api.decode_request(frame, position, header.api_version)
            requested(call, request, self._wiretap.topics)
        except (Malformed, KafkaError):
            self._end_reading()
            return None, b""
        self._wiretap.add(call)
        if name == FETCH:
            self._wiretap.read_from(call.process, positions_of(request, self._wiretap.topics))
        if can_reject and self._wiretap.is_loading_for(call):
            self._outstanding -= 1
            call.is_answered = True
            call.errors = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS.name,)
            self._wiretap.answered(call)
            return call, _rejection(api, header, request)
        if call.api == PRODUCE and not call.acks:  # The broker sends no response.
            self._outstanding -= 1
        else:
            self._pending[header.correlation_id] = call, api
        return call, b""

    def _response(self, frame: memoryview, call: Call, api: AnyApi) -> None:
        try:
            _, position = decode_response_header(frame, api.key, call.version)
            response = api.decode_response(frame, position, call.version)
        except (Malformed, KafkaError):
            self._end_reading()
            return
        responded(call, response, self._wiretap.topics)
        self._wiretap.answered(call)


def _changes(call: Call) -> bool:
    """Return whether a request writes outputs, commits offsets, or begins or ends transactions."""
    return bool(call.counts or call.offsets) or call.api in {INIT, END}


def _rejection(api: AnyApi, header: RequestHeader, request: Any) -> bytes:  # noqa: ANN401
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    response = mirror(response_class_of(api.name), request, code, None)
    return b"".join(response_frame(api, header.api_version, header.correlation_id, response))
