"""The console costs a broker nothing, in a process of its own, until it is used."""

from __future__ import annotations

import subprocess
import sys


def test_starting_costs_nothing():
    """A broker without viewers of its console has not even imported its code."""
    program = """
import asyncio, sys
from barnabas.testing import Broker

def loaded():
    return [name for name in sys.modules if name.startswith("barnabas.broker.console")]

async def ask(address, path):
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"GET " + path + b" HTTP/1.0\\r\\n\\r\\n")
    answer = await reader.read()
    writer.close()
    return answer.split()[1]

async def main():
    async with Broker(config={"barnabas.http.listener": "127.0.0.1:0"}) as broker:
        address = broker.server.http.address
        for path in (b"/readyz", b"/metrics", b"/config", b"/nothing"):
            await ask(address, path)
        assert not loaded(), loaded()
        assert await ask(address, b"/api/v1/topics") == b"200"
        assert "barnabas.broker.console.application" in loaded()

asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
