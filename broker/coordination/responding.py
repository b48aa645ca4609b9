"""Gives a response to what waits for it, at once or when something is durable."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from barnabas.storage.refusal import Refusal

logger = logging.getLogger(__name__)

Response = TypeVar("Response")


def respond_to(respond: Callable[[Response], object], response: Response, topic_name: str) -> None:
    """Call ``respond``; an error in it is logged.

    What was decided is done, and others wait behind this answer.
    """
    try:
        respond(response)
    except Exception:
        logger.exception("answer failed topic=%s", topic_name)


class PendingResponse(Generic[Response]):
    """A response that is true once something is durable, and another if it never will be."""

    __slots__ = ("_if_refused", "_respond", "_response", "_topic_name")

    def __init__(
        self,
        respond: Callable[[Response], object],
        response: Response,
        if_refused: Response,
        topic_name: str,
    ) -> None:
        self._respond = respond
        self._response = response
        self._if_refused = if_refused
        self._topic_name = topic_name

    def durable(self) -> None:
        """Give the response."""
        respond_to(self._respond, self._response, self._topic_name)

    def refused(self, _refusal: Refusal) -> None:
        """Give the other one."""
        respond_to(self._respond, self._if_refused, self._topic_name)
