"""Programs of client libraries in other languages that read offsets while a coordinator moves.

Each prints "move" when the coordinator of its group is to move, and waits for a line on its input.
Then it prints "=" and what it has read.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.counterparts.go import built
from tests.counterparts.npm import kafkajs, node
from tests.interop.offset_readers import Moves

HERE = Path(__file__).parent
LIMIT_S = 90


def run(command: list[str], moves: Moves) -> str:
    """Run a program to its end, move the coordinator at its request, and return its result."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if line == "move\n":
                moves()
            output, complaint = process.communicate("\n", timeout=LIMIT_S)
        finally:
            process.kill()
    assert process.returncode == 0, line + output + complaint
    assert output.startswith("="), output + complaint
    return output.removeprefix("=").strip()


def kafkajs_program(program: str, servers: str, group: str, topic: str) -> list[str]:
    """Return the command line of a program on kafkajs."""
    script = HERE / "kafkajs_offsets.js"
    return [str(node()), str(script), str(kafkajs()), program, servers, group, topic]


def go_program(library: str, program: str, servers: str, group: str, topic: str) -> list[str]:
    """Return the command line of a program on franz-go or Sarama."""
    return [str(built(HERE / "go_clients")), library, program, servers, group, topic]
