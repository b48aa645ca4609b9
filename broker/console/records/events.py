"""Stream of events that a task produces for one viewer, until it disconnects."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

from barnabas.broker.console.encoding import text_of
from barnabas.broker.console.pages.elsewhere import with_leader
from barnabas.broker.console.records.pace import Ended, ThreadPace
from barnabas.broker.console.shapes import Error
from barnabas.broker.http.messages.answer import Answer, Stream, Viewer
from barnabas.protocol.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question

logger = logging.getLogger("barnabas.broker.console")

SLOW_SECONDS: Final = 0.05
"""Interval of the checks whether a viewer has read."""
GOODBYE_SECONDS: Final = 5.0
"""Time for a viewer to close an ended stream."""
COMMENT: Final = ":\n\n"


def event(kind: str, data: str) -> str:
    """Return an event; ``data`` is JSON in one line."""
    return f"event: {kind}\ndata: {data}\n\n"


class Events(ABC):
    """Events for one viewer."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.pace = ThreadPace()
        self._task: asyncio.Task[None] | None = None
        self._viewer: Viewer

    def answer(self) -> Answer:
        """Return the response; the work starts when the response has started."""
        return Answer(200, "text/event-stream", Stream(self._joined, self._left))

    def end(self) -> None:
        """End the stream at once."""
        if self._task is not None:
            self._viewer.abort()

    def _joined(self, viewer: Viewer) -> None:
        self._viewer = viewer
        self._task = asyncio.get_running_loop().create_task(self._run())

    def _left(self, _viewer: Viewer) -> None:
        self.pace.end()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()  # It keeps a traceback with frames that refer to this object.

    async def _run(self) -> None:
        try:
            await self.show_all()
        except KafkaError as problem:
            error = with_leader(problem, self._question.broker.view)
            shown = text_of(Error(error.code.name, error.message))
            await self.shown(event("refused", shown))
        except Ended:
            pass
        except Exception:
            # The top frame: a bug ends the stream, and no more.
            logger.exception("console record stream failed")
            self._viewer.abort()
        # A browser that is disconnected reconnects: it must close the stream itself.
        await self._question.broker.clock.sleep(GOODBYE_SECONDS)
        self._viewer.abort()

    @abstractmethod
    async def show_all(self) -> None:
        """Send all events to the end; raises KafkaError."""

    def show(self, text: str) -> bool:
        """Send events unless the client has not read the previous ones."""
        return self._viewer.show(text)

    async def shown(self, text: str) -> None:
        """Send events; wait until the viewer has read the previous ones."""
        while not self.show(text):  # No event says that a viewer has read.
            await self._question.broker.clock.sleep(SLOW_SECONDS)
