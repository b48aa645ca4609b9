"""Commands that "copy as" offers are run unchanged, by a shell."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from tests.browser.console_broker import ConsoleBroker
from tests.browser.furnished import GROUP, TOPIC, TRANSACTIONAL_ID, furnished
from tests.browser.test_screens import go, screens, settled
from tests.counterparts import kafka_tools
from tests.counterparts.kcat import kcat
from tests.products import case
from tests.seeds import SEED

KAFKAS = {
    "kafka-topics.sh": kafka_tools.TOPICS,
    "kafka-configs.sh": kafka_tools.CONFIGS,
    "kafka-console-consumer.sh": kafka_tools.CONSOLE_CONSUMER,
    "kafka-console-producer.sh": kafka_tools.CONSOLE_PRODUCER,
    "kafka-consumer-groups.sh": kafka_tools.CONSUMER_GROUPS,
    "kafka-delete-records.sh": kafka_tools.DELETE_RECORDS,
    "kafka-get-offsets.sh": kafka_tools.GET_OFFSETS,
    "kafka-groups.sh": kafka_tools.GROUPS,
    "kafka-transactions.sh": kafka_tools.TRANSACTIONS,
}
TIMEOUT_S = 300
DETAILS = (
    f"/topics/{TOPIC}",
    f"/topics/{TOPIC}/records?partition=1&from=last:5",
    f"/topics/{TOPIC}/records?view=all&filter=customer-3",
    f"/groups/{GROUP}",
    f"/transactions/{TRANSACTIONAL_ID}",
)
"""Screens that the navigation does not name."""


@pytest.fixture(scope="module")
def full_broker(tmp_path_factory):
    """A broker in which commands find what they ask for."""
    with ConsoleBroker(tmp_path_factory.mktemp("full")) as running, furnished(running):
        yield running


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """An environment in which a shell finds the tools by the names that people call them by."""
    folder = tmp_path_factory.mktemp("bin")
    commands = {name: kafka_tools.tool_command(main) for name, main in KAFKAS.items()}
    commands |= {"barnabas": [sys.executable, "-m", "barnabas"], "kcat": [kcat()]}
    commands["curl"] = [str(shutil.which("curl"))]
    for name, command in commands.items():
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        script.chmod(0o755)
    environment = ConsoleBroker.python_environment()
    return {**environment, "PATH": f"{folder}{os.pathsep}{environment['PATH']}"}


def offered(page):
    """The lines of a screen, as they are copied, by their tools."""
    lines = page.locator("main code[data-command]")
    # They name this until it is known where the broker is.
    expect(lines.filter(has_text="localhost:9092")).to_have_count(0)
    return [(line.get_attribute("data-command"), line.text_content()) for line in lines.all()]


def all_lines(lines):
    return [*dict.fromkeys(lines)]


def one_of_each_tool(lines):
    """Return a line of each tool, drawn from SEED."""
    by_tool = {}
    for tool, line in all_lines(lines):
        by_tool.setdefault(tool, []).append((tool, line))
    return [random.Random(f"{SEED} {tool}").choice(found) for tool, found in by_tool.items()]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "choose", [case(one_of_each_tool, in_test=True), case(all_lines, in_test=False)]
)
def test_every_command_of_every_screen_runs(page, full_broker, shell, choose):
    page.goto(full_broker.url)
    found = {}
    for address in (*screens(page), *DETAILS):
        go(page, address)
        settled(page)
        found[address] = offered(page)
    assert all(found.values()), f"screens without a command: {found}"
    for tool, line in choose([each for lines in found.values() for each in lines]):
        assert line.split()[0] == tool
        address = full_broker.url if tool == "curl" else full_broker.bootstrap_servers
        assert address in line
        answer = subprocess.run(
            ["bash", "-c", line],
            env=shell,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert answer.returncode == 0, f"{line}: {answer.stdout}{answer.stderr}"
        assert answer.stdout, f"{line} says nothing"


def test_copy_button_copies_the_line(page, context, full_broker):
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{full_broker.url}/topics")
    settled(page)
    page.get_by_text("Copy as").click()
    lines = dict(offered(page))
    page.get_by_role("button", name="Copy kcat").click()
    expect(page.get_by_role("status").filter(has_text="Copied.")).to_be_attached()
    assert page.evaluate("navigator.clipboard.readText()") == lines["kcat"]
    page.get_by_role("heading", level=1).focus()
    page.keyboard.press("c")
    page.wait_for_function(
        "(line) => navigator.clipboard.readText().then((text) => text === line)",
        arg=lines["barnabas"],
    )
