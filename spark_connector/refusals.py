"""What a user reads instead of a traceback: one sentence, and the exit code that goes with it."""

from __future__ import annotations


class Refusal(Exception):
    """Something is missing or has failed; the message is the one sentence for the user."""

    exit_code = 1


class WrongUse(Refusal):
    """The command, the pipeline file or an option is wrong; nothing was started."""

    exit_code = 2
