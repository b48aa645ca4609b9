"""Gives a response to what waits for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

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
