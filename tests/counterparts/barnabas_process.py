"""Barnabas as a process: `python -m barnabas serve`."""

import os
import subprocess
import sys
from typing import IO, Self

from barnabas.broker.config.loading.environment import is_secret
from barnabas.broker.config.loading.properties import properties_text
from tests.checkout import SOURCES
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.forked import ForkedProcess, forks

COMPILED = os.environ.get("BARNABAS_PACKAGES")
"""Directory of the compiled build, from the Makefile, or None: processes run the sources."""


class BarnabasProcess(BrokerProcess):
    """`with BarnabasProcess() as broker:` a durable broker of this checkout, answering."""

    name = "Barnabas"
    interpreter = sys.executable
    """The Python that runs the broker."""
    is_forked = "PYTEST_VERSION" in os.environ and hasattr(os, "pidfd_open")
    """Whether the process may be forked by one that has imported the broker: only in tests."""
    packages = COMPILED or str(SOURCES)
    """The path of the packages of the broker, or empty for the packages installed beside it."""

    def command(self) -> list[str]:
        settings = {
            "listeners": self.listeners,
            "log.dirs": str(self.data_directory),
            "barnabas.http.listener": "",
        }
        settings |= self.overrides
        secrets = {key: settings.pop(key) for key in list(settings) if is_secret(key)}
        overrides = [f"--override={key}={value}" for key, value in settings.items()]
        path = self.directory / "secrets.properties"
        path.write_text(properties_text(secrets))
        return [self.interpreter, "-m", "barnabas", "serve", str(path), *overrides]

    def start(self) -> Self:
        """Start the process, and check that it runs the build that the Makefile has set."""
        end = self.output_path.stat().st_size if self.output_path.exists() else 0
        super().start()
        if self.packages == COMPILED:
            said = self.output_path.read_bytes()[end:].decode(errors="replace")
            assert " build=compiled " in said, f"{COMPILED} has no compiled build: {said}"
        return self

    def launch(
        self, command: list[str], environment: dict[str, str], output: IO[bytes]
    ) -> subprocess.Popen[bytes] | ForkedProcess:
        """Fork the process, unless it is measured or needs a program or environment of its own."""
        program, arguments = command[:3], command[3:]
        if (
            self.is_forked
            and program == [sys.executable, "-m", "barnabas"]
            and _without_test(environment) == USUAL_ENVIRONMENT
        ):
            return forks(USUAL_ENVIRONMENT).start(arguments, output)
        return super().launch(command, environment, output)

    def environment(self) -> dict[str, str]:
        return self.python_environment()

    @classmethod
    def python_environment(cls) -> dict[str, str]:
        """Return the environment in which the interpreter finds the packages."""
        # An installed wheel of another version must not win over these packages, nor the working
        # directory; and what a user starts has its .pyc files already.
        environment = {**os.environ, "PYTHONPATH": cls.packages, "PYTHONSAFEPATH": "1"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        return environment


class ExecutedBarnabas(BarnabasProcess):
    """A broker whose memory is measured: it shares none with a process that it was forked by."""

    is_forked = False


def _without_test(environment: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in environment.items() if key != "PYTEST_CURRENT_TEST"}


USUAL_ENVIRONMENT = _without_test(BarnabasProcess.python_environment())
"""Environment of a broker, before a test changes its own one."""
