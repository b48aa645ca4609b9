"""docs/configuration.md: generated, current and complete; its prose is true."""

from __future__ import annotations

import itertools
import re

import pytest

from barnabas.broker.config.broker_config import BROKER_CONFIGS
from barnabas.broker.config.group_configs import GROUP_CONFIGS
from barnabas.broker.config.ignored import IGNORED_CONFIGS, is_ignored
from barnabas.broker.config.loading.environment import EXCLUDED, SPECIAL, key_of
from barnabas.broker.config.pages import reference as config_reference
from barnabas.broker.config.pages.reference import PAGE, main, page, sections
from barnabas.broker.config.topic_configs import TOPIC_CONFIGS
from barnabas.broker.config.types import ConfigError
from tests.site.parts import slug

ANCHOR = re.compile(r'<a id="([^"]+)"></a>')


def rows(heading):
    """The rows of the table under a heading, cell by cell."""
    _, _, rest = page().partition(f"\n{heading}\n")
    assert rest, heading
    table = re.split(r"\n#+ ", rest)[0]
    table = ANCHOR.sub("", table)
    lines = [line for line in table.splitlines() if line.startswith(("| `", "| [`"))]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == page(), "run 'make docs-configuration'"


def test_every_key_has_an_anchor_of_its_own():
    anchors = ANCHOR.findall(page())
    assert len(anchors) == len(set(anchors))
    of_topics = {f"topic-{name}" if name in BROKER_CONFIGS else name for name in TOPIC_CONFIGS}
    assert set(anchors) == {*BROKER_CONFIGS, *of_topics, *GROUP_CONFIGS}
    headings = re.findall(r"^#+ (.+)", page(), re.MULTILINE)
    assert not set(anchors) & {slug(heading) for heading in headings}


def test_the_most_used_keys_come_first_and_their_links_lead_to_them():
    shown = rows("## Most used keys")
    assert len(shown) == 15
    for key, default, purpose, link in shown:
        name = re.fullmatch(r"\[`([^`]+)`\]\(#\1\)", key)[1]
        assert default == config_reference._default_and_accepted(BROKER_CONFIGS[name])[0]
        assert purpose
        target = re.fullmatch(r"\[[^\]]+\]\(([^)#]+)(#[^)]+)?\)", link)[1]
        assert (PAGE.parent / target).is_file()
    assert page().index("## Most used keys") < page().index("## Sources of values")


def test_every_key_of_the_broker_stands_in_one_section():
    keys = [key for of_section in sections().values() for key in of_section]
    assert {key.name for key in keys} == set(BROKER_CONFIGS)
    assert len(keys) == len(BROKER_CONFIGS)
    assert "" not in sections()
    assert len(sections()) == len(config_reference._SECTIONS)
    for title, of_section in sections().items():
        shown = rows(f"### {title}")
        assert [row[0] for row in shown] == [f"`{key.name}`" for key in of_section]
        assert all(len(row) == 5 for row in shown)


def test_every_key_of_topics_and_every_one_without_effect_is_there():
    assert [row[0] for row in rows("## Keys of topics")] == [f"`{name}`" for name in TOPIC_CONFIGS]
    _, _, ignored = page().partition("## Kafka's keys without effect")
    named = set(re.findall(r"`([a-z0-9.]+[a-z])`", ignored))
    assert named == {name for name in IGNORED_CONFIGS if is_ignored(name)}


def test_the_variables_it_names_mean_what_it_says():
    for variable, key in rows("## Environment"):
        assert key_of(variable.strip("`")) == re.match(r"`([^`]+)`", key)[1]
    for name in re.findall(r"KAFKA_[A-Z0-9_]+", page()):
        assert key_of(name) in BROKER_CONFIGS or name in EXCLUDED or name == "KAFKA_BROKER_ID"
    assert key_of("KAFKA_BROKER_ID") == "broker.id"
    assert all(name in page() for name in SPECIAL)


NUMBERS = ("whole number", "number")


def test_documented_range_is_the_range_of_the_check():
    """The ends of a range that the page names are the last values that pass."""
    for key, (word, step) in itertools.product(BROKER_CONFIGS.values(), (("from", -1), ("to", 1))):
        match = re.search(rf"\b{word} (-?[0-9]+)\b", key.accepted)
        if match and "text" not in key.accepted and key.accepted.startswith(NUMBERS):
            key.parse(match[1])
            with pytest.raises(ConfigError, match=key.name):
                key.parse(str(int(match[1]) + step))


def test_check_says_when_the_page_is_old(tmp_path, monkeypatch, capsys):
    old = tmp_path / "configuration.md"
    monkeypatch.setattr(config_reference, "PAGE", old)
    monkeypatch.setattr("sys.argv", ["config_reference", "--check"])
    assert main() == 1
    old.write_text("old")
    assert main() == 1
    assert "is not current: run 'make docs-configuration'" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["config_reference"])
    assert main() == 0
    monkeypatch.setattr("sys.argv", ["config_reference", "--check"])
    assert main() == 0
