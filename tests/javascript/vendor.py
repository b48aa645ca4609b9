"""`make vendor`: fetch the console's libraries again, as `vendor.json` beside them says.

With `--accept` after a change of versions there: the hashes of what is found go into the table.
Bare imports are rewritten to paths, since an import map would be an inline script, which the
console's policy forbids.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.checkout import ROOT
from tests.counterparts.errors import MissingCounterpart
from tests.counterparts.npm import PinnedPackage, fetch, unpacked

VENDOR = ROOT / "broker" / "console" / "static" / "vendor"
TABLE = VENDOR / "vendor.json"
PATHS = {
    b'"preact/hooks"': b'"./hooks.js"',
    b'"preact"': b'"./preact.js"',
    b'"htm"': b'"./htm.js"',
    b'"@preact/signals-core"': b'"./signals-core.js"',
}
EXPORTS = {"uplot.js": b"\nexport default uPlot;\n"}
"""What a plain script needs behind it to be a module."""
SOURCE_MAP = b"//# sourceMappingURL="

Row = dict[str, Any]


def main() -> int:
    """Fetch, check, rewrite."""
    parser = argparse.ArgumentParser(prog="python -m tests.javascript.vendor", description=__doc__)
    parser.add_argument("--accept", action="store_true", help="write the hashes that were found")
    is_accepting = parser.parse_args().accept
    rows = table()
    try:
        for row in rows:
            if is_accepting:
                row["tarball_sha512"] = _digest(row)
            for name, content in files(row).items():
                (VENDOR / name).write_bytes(content)
                row["files"][name] = hashlib.sha256(content).hexdigest()
    except MissingCounterpart as error:
        print(f"vendor: {error}", file=sys.stderr)
        return 1
    TABLE.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0


def table() -> list[Row]:
    """Return the rows of the table, one for each library."""
    rows: list[Row] = json.loads(TABLE.read_text(encoding="utf-8"))
    return rows


def package(row: Row) -> PinnedPackage:
    """Return the package that a library is taken from."""
    return PinnedPackage(row["package"], row["version"], row["tarball_sha512"])


def files(row: Row) -> dict[str, bytes]:
    """Return the files of a library by the names that they have in `vendor`."""
    folder = unpacked(package(row))
    return {
        name: rewritten(name, (folder / source).read_bytes())
        for name, source in row["sources"].items()
    }


def rewritten(name: str, content: bytes) -> bytes:
    """Return a file of a package as a browser can load it from its folder."""
    if name.endswith(".js"):
        for bare, path in PATHS.items():
            content = content.replace(b"from" + bare, b"from" + path)
        content = content.partition(SOURCE_MAP)[0].rstrip() + b"\n"
    return content + EXPORTS.get(name, b"")


def _digest(row: Row) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return hashlib.sha512(fetch(package(row), Path(folder)).read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
