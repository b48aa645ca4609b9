"""``barnabas`` and ``python -m barnabas``: the command line.

Ctrl-C while modules are imported ends the process by the signal, without a traceback.
"""

import signal
import sys


def main() -> int:
    """Run the command line and return its exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from barnabas.broker.cli import main as command_line

    return command_line.main()


if __name__ == "__main__":
    sys.exit(main())
