"""The lock of a data directory, held by a command so that no broker starts meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.broker.cli.errors import CommandError
from barnabas.storage.files.file_system import AlreadyLocked
from barnabas.storage.files.io import LocalFileSystem
from barnabas.storage.store.log_store import LOCK_NAME


@contextmanager
def locked(directory: str) -> Iterator[None]:
    """Keep brokers away; raises CommandError if one uses the directory.

    Without a lock file no broker uses it; a read-only medium may have none.
    """
    path = os.path.join(directory, LOCK_NAME)
    try:
        lock = LocalFileSystem(read_only=True).lock(path)
    except FileNotFoundError:
        yield
        return
    except AlreadyLocked:
        reason = "a broker is using this data directory: check a copy that 'barnabas backup' makes"
        raise CommandError(f"{directory}: {reason}") from None
    except PermissionError as error:
        raise CommandError(f"{path}: {error.strerror}") from None
    try:
        yield
    finally:
        lock.release()
