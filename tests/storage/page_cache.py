"""Tests of what is sent from the page cache, whatever the kernel keeps in it or says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.storage.files import io
from barnabas.storage.files.io import LocalFile

if TYPE_CHECKING:
    import pytest


def all_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every page of a file found in the cache, also where memory is short."""
    monkeypatch.setattr(io, "cached_pages", lambda *_: 1 << 40)
    monkeypatch.setattr(LocalFile, "pread_cached", LocalFile.pread)
