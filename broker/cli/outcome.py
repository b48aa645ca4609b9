"""Results of several operations: successes one by one, failures at the end in one line."""

from __future__ import annotations

from typing import Any

from barnabas.broker.admin.exchange import Rejected
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.output import print_json
from barnabas.broker.cli.printing import print_text


class Outcome:
    """Collects results and prints them as text or JSON; ``kind`` is the noun for the results."""

    def __init__(self, kind: str, verb: str, output_format: str) -> None:
        self._kind = kind
        self._verb = verb
        self._json = output_format == "json"
        self._results: list[dict[str, Any]] = []
        self._problems: list[str] = []

    def settled(self, name: str, code: int, message: str | None) -> bool:
        """Record a result; return whether it is a success."""
        if code:
            self.failed(Rejected(name, code, message))
        return not code

    def failed(self, problem: Exception) -> None:
        """Note a failure."""
        self._problems.append(str(problem))

    def done(self, name: str, remark: str = "", **more: object) -> None:
        """Record a success."""
        if not self._json:
            print_text(f"{name} {remark or self._verb}")
        self._results.append({self._kind: name, "changed": not remark, **more})

    def unchanged(self, name: str, remark: str) -> None:
        """Record that no change was necessary."""
        self.done(name, remark)

    def conclude(self) -> None:
        """Print the remaining results; raises CommandError if something failed."""
        if self._json:
            print_json(self._results)
        if self._problems:
            raise CommandError("; ".join(self._problems))
