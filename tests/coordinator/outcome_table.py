"""Tables of outcomes in text files: a block for each command, with a row for each state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path


class OutcomeTable:
    """A table as its file has it."""

    def __init__(self, path: Path, columns: int) -> None:
        """``columns``: the number of columns, with that of the state."""
        self._path = path
        self._head: list[str] = []
        self.commands: list[str] = []
        self.rows: dict[tuple[str, str], list[str]] = {}
        """Outcomes by command and state."""
        for line in path.read_text().splitlines():
            if line.startswith("#"):
                self._head.append(line)
            elif line and not line.startswith(" "):
                assert line not in self.commands, line
                self.commands.append(line)
            elif line:
                state, *rest = (cell.strip() for cell in line.split(" | "))
                assert len(rest) == columns - 1, line
                assert (self.commands[-1], state) not in self.rows, line
                self.rows[self.commands[-1], state] = rest

    def check_complete(self, commands: Iterable[str], states: Iterable[str]) -> None:
        """Check that there is a row for each state and command, and no other row."""
        assert set(self.rows) == {(command, state) for command in commands for state in states}

    def rewrite(
        self,
        commands: Iterable[str],
        states: Iterable[str],
        outcome: Callable[[str, str], Iterable[str]],
    ) -> None:
        """Write the outcomes of all commands in all states."""
        lines = list(self._head)
        for command in commands:
            rows = [[state, *outcome(state, command)] for state in states]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            lines += ["", command]
            for row in rows:
                cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
                lines.append(("  " + " | ".join(cells)).rstrip())
        self._path.write_text("\n".join(lines) + "\n")
