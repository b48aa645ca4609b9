"""How a command ends."""

OK = 0
FAILED = 1
USAGE = 2


class CommandError(Exception):
    """What the user is told in one line, and the exit code."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        self.exit_code = exit_code
        super().__init__(message)
