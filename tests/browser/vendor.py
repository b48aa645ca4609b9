"""`make vendor`: fetch the console's libraries again, as broker/console/static/vendor/vendor.json says.

Packages come from npm's registry by the npm client as it is configured, and are known by the hashes
of their archives. Bare imports are rewritten to paths, since an import map would be an inline
script, which the console's policy forbids.
"""

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VENDOR = Path(__file__).parents[2] / "broker" / "console" / "static" / "vendor"
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


def main() -> None:
    """Fetch, check, rewrite; with `--accept`, write the hashes that were found into the table."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    is_accepting = "--accept" in sys.argv[1:]
    for row in table:
        content = _archive(f"{row['package']}@{row['version']}")
        digest = hashlib.sha512(content).hexdigest()
        if is_accepting:
            row["tarball_sha512"] = digest
        elif digest != row["tarball_sha512"]:
            sys.exit(f"{row['package']}: the archive is not the one of vendor.json")
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for name, source in row["sources"].items():
                member = archive.extractfile(f"package/{source}")
                assert member is not None, source
                written = rewritten(name, member.read())
                (VENDOR / name).write_bytes(written)
                row["files"][name] = hashlib.sha256(written).hexdigest()
    TABLE.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")


def rewritten(name: str, content: bytes) -> bytes:
    """Return a file of a package as a browser can load it from its folder."""
    if name.endswith(".js"):
        for bare, path in PATHS.items():
            content = content.replace(b"from" + bare, b"from" + path)
        content = content.partition(SOURCE_MAP)[0].rstrip() + b"\n"
    return content + EXPORTS.get(name, b"")


def _archive(package: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, package]
        subprocess.run(command, check=True, timeout=300, capture_output=True)
        (found,) = Path(folder).glob("*.tgz")
        return found.read_bytes()


if __name__ == "__main__":
    main()
