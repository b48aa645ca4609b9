"""Directories that processes make beside each other and keep in one place."""

from __future__ import annotations

from pathlib import Path


def keep(made: Path, directory: Path) -> None:
    """Rename what was made to its place, unless another process was first: its copy is the same."""
    try:
        made.rename(directory)
    except OSError:
        if not directory.exists():
            raise
