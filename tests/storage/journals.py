"""Journals on a simulated disk, groups to put into them, and listeners."""

from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.journal.journal_files import JournalFiles
from barnabas.storage.journal.journal_format import BLOCK_BYTES, KIND_BATCHES
from barnabas.storage.runtime.threads import new_condition
from tests.storage.stores import batch

FILE_BYTES = 16 * BLOCK_BYTES
TIMEOUT_S = 60


class Heard:
    """A listener that writes down what it hears."""

    def __init__(self):
        self.events = []

    def durable(self, groups):
        self.events.append(("durable", groups))

    def written(self, groups):
        self.events.append(("written", groups))

    def refused(self, groups, partition_ids):
        self.events.append(("refused", groups, sorted(partition_ids)))

    def lost(self):
        self.events.append(("lost",))

    def disk_full(self, *, full):
        self.events.append(("full", full))

    def failed(self, error):
        raise error


class Waited(Heard):
    """A listener of the threads on which a test can wait."""

    def __init__(self):
        super().__init__()
        self._changed = new_condition()

    def durable(self, groups):
        with self._changed:
            super().durable(groups)
            self._changed.notify_all()

    def written(self, groups):
        with self._changed:
            super().written(groups)
            self._changed.notify_all()

    def wait_for(self, kind, groups):
        def are_there():
            return sum(count for what, count in self.events if what == kind) >= groups

        with self._changed:
            assert self._changed.wait_for(are_there, TIMEOUT_S), self.events


class Waiting:
    """A response and a waiter that records its calls, and the word for a success."""

    def __init__(self, heard, word):
        self.heard = heard
        self.word = word

    def prepare(self):
        self.heard.append(self.word)

    def durable(self):
        self.heard.append(self.word)

    def refused(self, refusal):
        self.heard.append(("refused", self.word, refusal))


def started(disk, sequence=1):
    files = JournalFiles(disk, "/data", FILE_BYTES)
    files.start(sequence)
    files.prepare_spare()
    return files


def group_of(*sizes, partition_id=1, base_offset=0, epoch=-1):
    """A group of one-record batches of about these sizes."""
    group = CommitGroup()
    for size in sizes:
        view = batch(value=b"v" * size)
        view[:8] = base_offset.to_bytes(8, "big")
        view[12:16] = epoch.to_bytes(4, "big", signed=True)
        group.add_body(view, stable=False)
        group.add_entry(KIND_BATCHES, epoch, partition_id, base_offset, base_offset + 1, len(view))
        base_offset += 1
    return group


def replayed(disk, sequence=1, *, file_bytes=FILE_BYTES):
    """(sequence, [(kind, base offset)]) of every group that a start would find."""
    files = JournalFiles(disk, "/data", file_bytes)
    found = [
        (header.sequence, [(entry.kind, entry.base_offset) for entry in entries])
        for header, entries in files.replay(sequence)
    ]
    return found, files.next_sequence
