"""Copy the pages of the documentation into one directory, from which MkDocs builds the site.

`python -m tests.site.assemble` writes `build/pages`: everything in `docs/`, and the pages at the
root of the checkout, whose links are changed to their places on the site. Long pages are divided.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.checkout import ROOT
from tests.site.parts import divide

PAGES = ROOT / "build" / "pages"
AT_THE_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "vulnerabilities.md",
    "LICENSE": "license.txt",
}
"""Files at the root of the checkout, and their names on the site."""

_LINK = re.compile(r"(\]\(|\]: )((?:\.\./)*)([\w./-]+)")


def relinked(text: str, depth: int, *, at_the_root: bool) -> str:
    """Return a page with links that hold in the directory of the site's pages.

    ``depth`` is the number of folders between the page and the site's first one.
    """

    def changed(link: re.Match[str]) -> str:
        opening, parents, path = link.groups()
        if at_the_root:
            moved = AT_THE_ROOT.get(path, path.removeprefix("docs/"))
        elif len(parents) == 3 * (depth + 1):
            parents, moved = parents[3:], AT_THE_ROOT.get(path, path)
        else:
            moved = path
        return f"{opening}{parents}{moved}"

    return _LINK.sub(changed, text)


def assemble(pages: Path = PAGES) -> None:
    """Replace the directory of the site's pages."""
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)
    for path in pages.rglob("*.md"):
        depth = len(path.relative_to(pages).parts) - 1
        path.write_text(relinked(path.read_text(), depth, at_the_root=False))
    for name, moved in AT_THE_ROOT.items():
        (pages / moved).write_text(relinked((ROOT / name).read_text(), 0, at_the_root=True))
    divide(pages)


if __name__ == "__main__":
    assemble()
