"""The help texts in docs/command-line.md.

`python -m tests.real.cli.documentation` renews them.
"""

from __future__ import annotations

import re
import subprocess

from tests.checkout import ROOT
from tests.real.cli.command import command, environment

PAGE = ROOT / "docs" / "command-line.md"
BLOCK = re.compile(r"```\n\$ barnabas ((?:[\w-]+ )*)--help\n.*?```", re.DOTALL)


def help_of(*words: str) -> str:
    """Return what a command says of itself."""
    ended = subprocess.run(
        command(*words, "--help"), env=environment(), capture_output=True, text=True, check=True
    )
    return ended.stdout


def quoted(page: str) -> list[tuple[str, ...]]:
    """Return the commands whose help is quoted."""
    return [tuple(found[1].split()) for found in BLOCK.finditer(page)]


def renewed(page: str) -> str:
    """Return the page with every help text as it is now."""

    def block(found: re.Match[str]) -> str:
        return f"```\n$ barnabas {found[1]}--help\n{help_of(*found[1].split())}```"

    return BLOCK.sub(block, page)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
