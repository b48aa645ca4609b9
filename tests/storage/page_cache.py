"""Fixtures for tests of the page cache that do not depend on the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.storage.files import io
from barnabas.storage.files.io import LocalFile

if TYPE_CHECKING:
    import pytest


def all_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every page of a file as cached, also when memory is short."""
    monkeypatch.setattr(io, "cached_pages", lambda *_: 1 << 40)
    monkeypatch.setattr(LocalFile, "pread_cached", LocalFile.pread)
