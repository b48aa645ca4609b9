"""Tests of what is sent from the page cache, on kernels that do not say what it has."""

import tempfile

from barnabas.storage import io, linux


def all_is_cached_where_nobody_knows(monkeypatch):
    """What was just written is cached; where ``cachestat`` does not say so, this does."""
    with tempfile.TemporaryFile() as file:
        file.write(b"x")
        file.flush()
        if linux.cached_pages(file.fileno(), 1, 0) < 0:
            monkeypatch.setattr(io, "cached_pages", lambda *_: 1 << 40)
