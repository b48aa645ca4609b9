"""Java processes that run Apache Kafka's tools one after the other.

A tool spends nearly all of its processor time in starting a JVM and loading classes. A host loads
the jars of the clients once; the classes of the tools have a loader of their own for each run,
since some tools keep counts in static fields. Kafka's `Exit` is redirected, so that a tool that
exits ends its run only. A tool that ends the JVM in another way fails with HostEnded. A host in
which a tool left a thread of a client is not used again.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from py4j.java_gateway import (
    CallbackServerParameters,
    GatewayParameters,
    JavaGateway,
    find_jar_path,
)
from py4j.protocol import Py4JError, Py4JJavaError

from tests.counterparts.class_archive import QUIET
from tests.counterparts.jars import kafka_jars
from tests.counterparts.java import java
from tests.waiting import wait_until

# Small heap, serial collector, first-tier compiler: a tool works for less than a second.
JVM_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
TOOL_JARS = ("kafka-tools-4", "kafka_2.13-")
"""Beginnings of the names of the jars whose classes are loaded for each run."""
RUNS_MOST = 200
"""Runs after which a host ends: each has loaded classes of its own."""
IDLE_MOST = 2
"""Hosts that are kept: scripts run the same command at two brokers at a time."""
THREADS_OF_CLIENTS = ("kafka-", "consumer_background_thread")
ENDING_S = 1.0
"""Bound for threads that end by themselves after a tool."""
LOST_S = 30.0
"""Bound for a JVM to end whose connection is lost."""
MAIN = "main"


class HostEnded(Exception):
    """A tool ended the JVM of its host instead of calling `Exit`."""


class _Ended(Exception):
    """The tool called `Exit`."""


class _Exit:
    """Kafka's `Exit.Procedure`: notes the code and the end of the output, and ends the run."""

    def __init__(self, output: Output, hooks: _Hooks) -> None:
        self._output = output
        self._hooks = hooks
        self.code: int | None = None
        self.end = 0

    def reset(self) -> None:
        self.code = None

    def execute(self, code: int, _message: str | None) -> None:
        # What a tool prints because it was not ended at once does not count.
        if self.code is None:
            self.code = code
            self._hooks.run()
            self.end = self._output.end
        raise _Ended

    class Java:
        implements = ("org.apache.kafka.common.utils.Exit$Procedure",)


class _Hooks:
    """Kafka's `Exit.ShutdownHookAdder`: keeps the hooks of a run."""

    def __init__(self) -> None:
        self._hooks: list[Any] = []

    def addShutdownHook(self, _name: str, hook: Any) -> None:  # noqa: N802 - Java's name
        self._hooks.append(hook)

    def run(self) -> None:
        hooks, self._hooks = self._hooks, []
        for hook in hooks:
            hook.run()

    class Java:
        implements = ("org.apache.kafka.common.utils.Exit$ShutdownHookAdder",)


class Output:
    """The file that both outputs of a host go to."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed with the host

    @property
    def end(self) -> int:
        return os.fstat(self.file.fileno()).st_size

    def between(self, begin: int, end: int) -> str:
        return os.pread(self.file.fileno(), end - begin, begin).decode()


class ToolHost:
    """A JVM that runs one tool at a time."""

    def __init__(self) -> None:
        self._output = Output()
        self._hooks = _Hooks()
        self._exit = _Exit(self._output, self._hooks)
        self._runs = 0
        self._process, port = _started(self._output)
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=port, auto_convert=True),
            callback_server_parameters=CallbackServerParameters(
                port=0, daemonize=True, daemonize_connections=True
            ),
        )
        self._jvm = self._gateway.jvm
        self._prepare()

    def _prepare(self) -> None:
        java_side = self._gateway.java_gateway_server
        port = self._gateway.get_callback_server().get_listening_port()
        java_side.resetCallbackClient(java_side.getCallbackClient().getAddress(), port)
        kafkas = self._jvm.org.apache.kafka.common.utils.Exit
        kafkas.setExitProcedure(self._exit)
        kafkas.setHaltProcedure(self._exit)
        kafkas.setShutdownHookAdder(self._hooks)
        self._jar_urls = [path.as_uri() for path in _jars(of_tools=True)]

    @property
    def is_reusable(self) -> bool:
        """Whether the process runs and no tool left a thread in it."""
        if self._process.poll() is not None or self._runs >= RUNS_MOST:
            return False
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not self._threads(), seconds=ENDING_S)
            return True
        return False

    def run(
        self,
        main_class: str,
        arguments: Sequence[str],
        stdin: str,
        properties: Mapping[str, str],
        timeout_s: float,
    ) -> tuple[int, str]:
        """Run a tool; return its exit code and what it printed on both outputs."""
        self._runs += 1
        self._exit.reset()
        begin = self._output.end
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(timeout_s, stop)
        timer.start()
        try:
            self._run(main_class, arguments, stdin, properties)
        except Py4JError as error:
            if self._process.poll() is None:
                raise
            command = [main_class, *arguments]
            if late.is_set():
                raise subprocess.TimeoutExpired(command, timeout_s) from error
            raise HostEnded(
                f"{main_class} ended its JVM with {self._process.returncode}: name it in"
                f" kafka_tools.ALONE; its output: {self._output.between(begin, self._output.end)}"
            ) from error
        finally:
            timer.cancel()
            timer.join()
        end = self._output.end if self._exit.code is None else self._exit.end
        return self._exit.code or 0, self._output.between(begin, end)

    def _run(
        self, main_class: str, arguments: Sequence[str], stdin: str, properties: Mapping[str, str]
    ) -> None:
        try:
            with self._properties(properties):
                self._call(main_class, arguments, stdin)
                self._hooks.run()
        except Py4JError:
            # A lost connection, which py4j reports in several ways, means that the JVM ends.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(LOST_S)
            raise

    def _call(self, main_class: str, arguments: Sequence[str], stdin: str) -> None:
        thread = self._jvm.Thread.currentThread()
        thread.setName(MAIN)
        self._jvm.System.setIn(self._jvm.java.io.ByteArrayInputStream(stdin.encode()))
        urls = self._array("java.net.URL", [self._jvm.java.net.URL(url) for url in self._jar_urls])
        loader = self._jvm.java.net.URLClassLoader(urls)
        thread.setContextClassLoader(loader)
        words = self._array("java.lang.String", arguments)
        try:
            method = loader.loadClass(main_class).getMethod(
                MAIN, self._array("java.lang.Class", [words.getClass()])
            )
            method.invoke(None, self._array("java.lang.Object", [words]))
        except Exception as error:
            thrown = self._thrown(error)
            if thrown is None:
                raise
            if self._exit.code is None:
                self._print_uncaught(thrown)
        loader.close()

    def _thrown(self, error: BaseException | None) -> Any:
        """Return the Java exception of this host behind an error, or None.

        PySpark replaces what py4j raises, of all gateways, and asks its own JVM about it: another
        exception is raised then, or one of another JVM, while that of the host is handled.
        """
        while error is not None:
            if isinstance(error, Py4JJavaError):
                thrown = error.java_exception
                if thrown._gateway_client is self._gateway._gateway_client:
                    return thrown
            error = error.__context__
        return None

    def _print_uncaught(self, thrown: Any) -> None:
        """End the run as a JVM ends whose main method throws."""
        cause = thrown.getCause() or thrown
        errors = self._jvm.System.err
        errors.print(f'Exception in thread "{MAIN}" ')
        cause.printStackTrace(errors)
        self._exit.code, self._exit.end = 1, self._output.end

    @contextlib.contextmanager
    def _properties(self, properties: Mapping[str, str]) -> Iterator[None]:
        for name, value in properties.items():
            self._jvm.System.setProperty(name, value)
        yield
        for name in properties:
            self._jvm.System.clearProperty(name)

    def _array(self, of: str, values: Sequence[Any]) -> Any:
        type_: Any = self._jvm
        for name in of.split("."):
            type_ = getattr(type_, name)
        array = self._gateway.new_array(type_, len(values))
        for index, value in enumerate(values):
            array[index] = value
        return array

    def _threads(self) -> list[str]:
        """Return the threads of clients that run."""
        try:
            every = self._jvm.Thread.getAllStackTraces().keySet().toString()
        except Py4JError:
            return []
        return [name for name in every.split("Thread[") if name.startswith(THREADS_OF_CLIENTS)]

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._gateway.shutdown()
        self._output.file.close()


def _started(output: Output) -> tuple[subprocess.Popen[bytes], int]:
    """Start the JVM; return it and the port of its gateway, which is the first that it prints."""
    class_path = ":".join(map(str, [*_jars(of_tools=False), find_jar_path()]))
    command = [str(java()), *JVM_OPTIONS, *QUIET, "-cp", class_path, "py4j.GatewayServer"]
    # It ends with its standard input, and so with this process.
    process = subprocess.Popen(
        [*command, "--die-on-broken-pipe", "0"],
        stdin=subprocess.PIPE,
        stdout=output.file,
        stderr=subprocess.STDOUT,
    )

    def said() -> str:
        return output.between(0, output.end)

    wait_until(lambda: said().endswith("\n") or process.poll() is not None, said)
    assert process.poll() is None, said()
    return process, int(said())


def _jars(*, of_tools: bool) -> list[Path]:
    return [
        path
        for path in sorted(kafka_jars().glob("*.jar"))
        if path.name.startswith(TOOL_JARS) == of_tools
    ]


class _Hosts:
    """The hosts of this process that run nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[ToolHost] = []
        self._process_id = os.getpid()

    @contextlib.contextmanager
    def one(self) -> Iterator[ToolHost]:
        """Lend a host; keep it if it can be used again."""
        host = self._take() or ToolHost()
        is_kept = False
        try:
            yield host
            is_kept = host.is_reusable and self._keep(host)
        finally:
            if not is_kept:
                host.close()

    def close(self) -> None:
        while (host := self._take()) is not None:
            host.close()

    def _take(self) -> ToolHost | None:
        with self._lock:
            if self._process_id != os.getpid():
                # A forked process does not use the hosts of its parent.
                self._process_id, self._idle = os.getpid(), []
            return self._idle.pop() if self._idle else None

    def _keep(self, host: ToolHost) -> bool:
        with self._lock:
            has_room = len(self._idle) < IDLE_MOST
            if has_room:
                self._idle.append(host)
            return has_room


_HOSTS = _Hosts()
atexit.register(_HOSTS.close)


def run_hosted(
    main_class: str,
    arguments: Sequence[str],
    *,
    stdin: str,
    properties: Mapping[str, str],
    timeout_s: float,
) -> tuple[int, str]:
    """Run a tool in a host; return its exit code and output, or raise TimeoutExpired."""
    with _HOSTS.one() as host:
        return host.run(main_class, arguments, stdin, properties, timeout_s)
