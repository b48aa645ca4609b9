"""Where downloaded files are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """Return `${XDG_CACHE_HOME:-~/.cache}/barnabas`, created."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    directory = Path(base) / "barnabas"
    directory.mkdir(parents=True, exist_ok=True)
    return directory
