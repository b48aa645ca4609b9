"""The store as a whole: when appenders are held back, and what lets them go on."""

from barnabas.storage.log_store import StoreSettings
from tests.storage.stores import Host, batch


class Throttled(Host):
    """A host that notes when its appenders are held back."""

    def boot(self):
        log = super().boot()
        self.held_back = False
        self.store.callbacks.on_backlogged = self._on_backlogged
        return log

    def _on_backlogged(self, backlogged):
        self.held_back = backlogged


def test_a_group_larger_than_the_journal_holds_nobody_back():
    """No checkpoint gives back the file that is being written: waiting for one would never end."""
    host = Throttled(
        settings=StoreSettings(journal_file_bytes=64 << 10, journal_max_bytes=128 << 10)
    )
    host.boot()
    host.append(batch(value=b"v" * 300_000))
    host.checkpoint()
    assert not host.held_back
    host.append(batch())
    assert host.log.next_offset == 2


def test_a_small_journal_is_checkpointed_before_it_is_full():
    """Or producers would stand still until the next checkpoint that is due by time."""
    host = Throttled(
        settings=StoreSettings(journal_file_bytes=64 << 10, journal_max_bytes=256 << 10)
    )
    host.boot()
    for _ in range(40):
        host.append(batch(value=b"v" * 20_000))
        assert not host.held_back
    assert host.store.files is not None
    assert host.store.files.used_bytes <= 256 << 10
