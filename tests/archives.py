"""Archives that any Python from 3.11 on can extract: ``filter`` came with 3.11.4."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable
from pathlib import Path


def extract(archive: Path, directory: Path | str) -> Iterable[tarfile.TarInfo]:
    """Write the members of an archive into a directory, and return them.

    Raises tarfile.FilterError for a member outside of it, where Python can find those.
    """
    with tarfile.open(archive) as opened:
        opened.extraction_filter = getattr(tarfile, "data_filter", None)
        opened.extractall(directory)
        return opened.getmembers()
