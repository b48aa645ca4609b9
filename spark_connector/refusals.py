"""Errors that a user reads as one sentence without a traceback, with their exit codes."""

from __future__ import annotations


class Refusal(Exception):
    """Something is missing or has failed; the message is one sentence for the user."""

    exit_code = 1


class WrongUse(Refusal):
    """The command, the pipeline file or an option is wrong; nothing was started."""

    exit_code = 2
