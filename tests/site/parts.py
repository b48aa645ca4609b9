"""Divide long pages into one page for each task, and let links follow.

In the checkout a long page is one file, which people search as a whole. On the site its sections
are pages of their own, so that each has a place in the navigation.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import NamedTuple


class Part(NamedTuple):
    """A page of the site: its name, its title, and the headings of its sections."""

    name: str
    title: str
    headings: tuple[str, ...]


PARTS = {
    "command-line.md": (
        Part("cli/tls.md", "TLS and authentication", ("TLS and logins",)),
        Part("cli/cluster.md", "barnabas cluster", ("The cluster",)),
        Part("cli/topics.md", "barnabas topics", ("Topics",)),
        Part(
            "cli/records.md",
            "barnabas produce, consume, records",
            ("Writing records", "Reading records", "Deleting records"),
        ),
        Part("cli/groups.md", "barnabas groups", ("Groups",)),
        Part("cli/transactions.md", "barnabas transactions", ("Transactions",)),
        Part("cli/users.md", "barnabas users, acls, quotas", ("Users, rules and limits",)),
        Part("cli/bench.md", "barnabas bench", ("Benchmarks",)),
        Part("cli/broker.md", "barnabas serve, init, ready, config", ("The broker",)),
        Part("cli/files.md", "barnabas check, backup, restore, dump-log", ("Its files",)),
    ),
    "cluster.md": (
        Part(
            "cluster-deploy.md",
            "Deploy a cluster",
            ("Start", "PostgreSQL", "Between brokers", "Compose and Kubernetes"),
        ),
        Part(
            "cluster-operate.md",
            "Operate a cluster",
            (
                "Failures",
                "Stops, joins, moves",
                "Upgrades",
                "Moving in and out",
                "Backups",
                "Alerts",
            ),
        ),
    ),
}
"""The pages that are divided. Sections that no part names stay on the page."""

_SECTION = re.compile(r"^(?=## )", re.MULTILINE)
_HEADING = re.compile(r"^#{2,6} (.+)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_TARGET = re.compile(r"(\]\(|^\[[^\]]+\]: )([^\s)]*)", re.MULTILINE)


def slug(heading: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")


def divide(pages: Path) -> None:
    """Divide the pages in the directory ``pages``, and change all links to what has moved."""
    moved: dict[tuple[str, str], str] = {}
    for page, parts in PARTS.items():
        moved |= _divide_page(pages, page, parts)
    for path in pages.rglob("*.md"):
        name = path.relative_to(pages).as_posix()
        path.write_text(_linked(path.read_text(), name, moved))


def _divide_page(pages: Path, page: str, parts: tuple[Part, ...]) -> dict[tuple[str, str], str]:
    """Write the parts of a page; return the new place of each anchor that has moved."""
    beginning, *sections = _SECTION.split((pages / page).read_text())
    by_heading = {section[3:].partition("\n")[0]: section for section in sections}
    moved = {}
    for part in parts:
        lost = [heading for heading in part.headings if heading not in by_heading]
        if lost:
            raise SystemExit(f"docs/{page} has no section {lost[0]!r}: correct tests/site/parts.py")
        texts = [by_heading.pop(heading) for heading in part.headings]
        for heading in _HEADING.findall(_FENCED.sub("", "".join(texts))):
            is_title = len(texts) == 1 and heading == part.headings[0]
            moved[page, slug(heading)] = part.name if is_title else f"{part.name}#{slug(heading)}"
        if len(texts) == 1:
            texts = [_promoted(texts[0].partition("\n")[2])]
        target = pages / part.name
        target.parent.mkdir(exist_ok=True)
        # Links are still those of the page that was divided.
        text = f"# {part.title}\n\n{''.join(texts).lstrip()}"
        target.write_text(_based(text, page, part.name))
    listed = "".join(f"* [{part.title}]({part.name})\n" for part in parts)
    kept = "".join(by_heading.values())
    (pages / page).write_text(f"{beginning.rstrip()}\n\n{listed}\n{kept}")
    return moved


def _promoted(text: str) -> str:
    """Return a section with its headings one level higher."""
    blocks = _FENCED.findall(text)
    words = [re.sub(r"^#(?=#+ )", "", each, flags=re.MULTILINE) for each in _FENCED.split(text)]
    return "".join(a + b for a, b in zip(words, [*blocks, ""], strict=True))


def _is_elsewhere(target: str) -> bool:
    return not target or re.match(r"[a-z]+:", target) is not None


def _based(text: str, page: str, name: str) -> str:
    """Return a text of ``page`` whose relative links hold on the page ``name``."""

    def changed(link: re.Match[str]) -> str:
        opening, target = link.groups()
        if _is_elsewhere(target):
            return link[0]
        path, mark, anchor = target.partition("#")
        path = posixpath.join(posixpath.dirname(page), path) if path else page
        return f"{opening}{posixpath.relpath(path, posixpath.dirname(name) or '.')}{mark}{anchor}"

    return _TARGET.sub(changed, text)


def _linked(text: str, name: str, moved: dict[tuple[str, str], str]) -> str:
    """Return a page whose links to moved sections lead to their new places."""
    folder = posixpath.dirname(name)

    def changed(link: re.Match[str]) -> str:
        opening, target = link.groups()
        path, _, anchor = target.partition("#")
        page = posixpath.normpath(posixpath.join(folder, path)) if path else name
        place = moved.get((page, anchor))
        if _is_elsewhere(target) or place is None:
            return link[0]
        path, mark, anchor = place.partition("#")
        return f"{opening}{posixpath.relpath(path, folder or '.')}{mark}{anchor}"

    return _TARGET.sub(changed, text)
