"""One built image for all workers of a run, removed when the last of them has finished."""

from __future__ import annotations

import fcntl
import pickle
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.image.base_image import base_archive
from tests.image.image import Image, Store
from tests.image.tools import MissingTool, check_tools


class SharedImage:
    """The image in a directory that all workers of a run know, and the count of its users."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        self._directory = directory
        self._result = directory / "result"
        """The image, or the reason why it cannot be built."""
        self._users = directory / "users"

    def take(self) -> Image:
        """Return the image, built unless another worker has; raises MissingTool."""
        with self._lock():
            if not self._result.exists():
                self._result.write_bytes(pickle.dumps(self._build()))
            found: Image | MissingTool = pickle.loads(self._result.read_bytes())
            if isinstance(found, MissingTool):
                raise found
            self._count(+1)
        return found

    def give_back(self) -> None:
        """Remove the image if no other worker uses it."""
        with self._lock():
            if self._count(-1) == 0:
                self._result.unlink()
                Store(self._directory).clear()

    def _build(self) -> Image | MissingTool:
        try:
            check_tools()
            store = Store(self._directory)
            with ExitStack() as on_failure:
                # Otherwise mounts would be left.
                on_failure.callback(store.clear)
                store.add_base(base_archive())
                built = store.build()
                on_failure.pop_all()
                return built
        except MissingTool as missing:
            return missing

    def _count(self, change: int) -> int:
        users = int(self._users.read_text()) if self._users.exists() else 0
        self._users.write_text(str(users + change))
        return users + change

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with (self._directory / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
