"""Pages of docs/ that are made from the code: written, or compared with what they should be."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def write_or_compare(page: Path, text: str, *, module: str, target: str) -> int:
    """Run ``python -m module``: write the page, or with ``--check`` compare it.

    Return the exit code. ``target`` is the one of make that writes the page.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--check", action="store_true", help="only say whether it is current")
    if not parser.parse_args().check:
        page.write_text(text, encoding="utf-8")
        return 0
    if page.is_file() and page.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"docs/{page.name} is not current: run 'make {target}'\n")
    return 1
