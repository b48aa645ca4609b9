"""A search as a stream: found records, progress, and a cursor.

It pauses while the viewer does not read, so nothing accumulates.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.console.encoding import text_of
from barnabas.broker.console.records.events import Events, event
from barnabas.broker.console.records.formats import GUESSED_FROM
from barnabas.broker.console.records.reading import begin, blocking_of
from barnabas.broker.console.records.rows import Formats, json_rows
from barnabas.broker.console.records.shapes import SearchState

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question
    from barnabas.broker.console.records.examining import FoundRecord
    from barnabas.broker.console.records.reading import Reading
    from barnabas.broker.http.messages.answer import Answer

TOGETHER: Final = GUESSED_FROM
"""Records that are shown together at most."""
SHOWN_SECONDS: Final = 0.25
"""Time for which a found record waits for others."""
PROGRESS_SECONDS: Final = 1.0


async def search(question: Question) -> Answer:
    """Return the stream of a search; raises KafkaError if the search is invalid."""
    with question.places.take(question.access) as place:  # Only to find out whether it can be.
        await begin(question, place, place.pace)
    return _Search(question).answer()


class _Search(Events):
    """One search."""

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self._formats: Formats | None = None
        self._found = 0

    async def show_all(self) -> None:
        access, places = self._question.access, self._question.places
        viewer = self._question.text("viewer")
        viewing, end = (access.principal, access.host, viewer), self.end
        if viewer:
            places.replace_search(viewing, end)
        try:
            with places.take(access) as place:
                await self._search(await begin(self._question, place, self.pace))
        finally:
            places.forget_search(viewing, end)

    async def _search(self, reading: Reading) -> None:
        clock = self._question.broker.clock
        waiting: list[FoundRecord] = []
        shown_s = progress_s = clock.monotonic()
        async for found in reading.scan.records():
            if found is not None:
                waiting.append(found)
            now_s = clock.monotonic()
            if len(waiting) >= TOGETHER or (waiting and now_s - shown_s >= SHOWN_SECONDS):
                await self._show(reading, waiting)
                waiting, shown_s = [], now_s
            if now_s - progress_s >= PROGRESS_SECONDS:
                self.show(event("progress", self._state(reading)))
                progress_s = now_s
        if waiting:
            await self._show(reading, waiting)
        await self.shown(event("done", self._state(reading)))

    async def _show(self, reading: Reading, waiting: list[FoundRecord]) -> None:
        run, pace = reading.readers.run, self.pace
        if self._formats is None:
            name = reading.topic.name
            self._formats = await run(partial(reading.formats.guessed, name, waiting, pace))
        blocking = await blocking_of(self._question, reading.topic, waiting)
        rows = await run(partial(json_rows, waiting, self._formats, blocking, pace))
        self._found += len(rows)
        await self.shown("".join(event("record", row) for row in rows))

    def _state(self, reading: Reading) -> str:
        formats, scan = self._formats, reading.scan
        return text_of(
            SearchState(
                self._question.now_ms,
                scan.left(),
                None if formats is None else formats.key,
                None if formats is None else formats.value,
                self._found,
                scan.summary(),
            )
        )
