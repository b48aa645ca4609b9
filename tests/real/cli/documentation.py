"""The help texts in docs/command-line.md.

`python -m tests.real.cli.documentation` renews them.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from unittest import mock

from barnabas.broker.cli.main import main
from tests.checkout import ROOT

PAGE = ROOT / "docs" / "command-line.md"
BLOCK = re.compile(r"```\n\$ barnabas ((?:[\w-]+ )*)--help\n.*?```", re.DOTALL)


def help_of(*words: str) -> str:
    """Return the help text of a command, on a screen of 80 columns."""
    output = io.StringIO()
    with (
        mock.patch.dict(os.environ, {"COLUMNS": "80"}),
        contextlib.redirect_stdout(output),
        contextlib.suppress(SystemExit),
    ):
        main([*words, "--help"])
    return output.getvalue()


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
