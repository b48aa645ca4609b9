"""Directory of downloaded files, kept between runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """Return `${XDG_CACHE_HOME:-~/.cache}/barnabas`, created."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    directory = Path(base) / "barnabas"
    # Programs start from here: no other user may replace them, with any umask.
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory
