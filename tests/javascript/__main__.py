"""`python -m tests.javascript`: are the console's scripts well typed and free of slips?

TypeScript's compiler sees a copy of them beside the declarations of the libraries, which are not in
`static/vendor`: browsers have no use for them. Biome lints and leaves the layout alone: its own
takes apart what is written between the elements of a template.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.checkout import ROOT
from tests.counterparts.errors import MissingCounterpart
from tests.counterparts.npm import biome, tsc, unpacked
from tests.javascript.api_types import declarations
from tests.javascript.vendor import VENDOR, Row, package, table

HERE = Path(__file__).parent
STATIC = ROOT / "broker" / "console" / "static"
BUILD = ROOT / "build" / "javascript"


def main() -> int:
    """Check; return 0 if nothing is wrong."""
    try:
        return max(check_types(STATIC), lint(STATIC))
    except MissingCounterpart as error:
        print(f"javascript: {error}", file=sys.stderr)
        return 1


def check_types(static: Path, build: Path = BUILD) -> int:
    """Have TypeScript's compiler check the scripts; return 0 if it finds nothing."""
    shutil.rmtree(build, ignore_errors=True)
    shutil.copytree(static, build / "static", ignore=_libraries_and_others)
    for row in table():
        declare(row, build)
    (build / "static" / "api.d.ts").write_text(declarations())
    shutil.copy(HERE / "tsconfig.json", build)
    command = [tsc(), "--pretty", "false"]
    answer = subprocess.run(command, cwd=build, capture_output=True, text=True, check=False)
    # Named is what is to be mended, not its copy.
    print(re.sub(r"^static(?=/)", _shown(static), answer.stdout, flags=re.MULTILINE), end="")
    print(answer.stderr, end="", file=sys.stderr)
    return answer.returncode


def declare(row: Row, build: Path) -> None:
    """Put the declarations of a library where the compiler looks for them."""
    name: str = row["package"]
    link = build / "node_modules" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(unpacked(package(row)))
    for file, source in row["sources"].items():
        if not file.endswith(".js"):
            continue
        # "hooks/dist/hooks.mjs" of preact is what is imported as "preact/hooks".
        module = f"{name}/{source.partition('dist/')[0]}".rstrip("/")
        text = f'export * from "{module}";\nexport {{ default }} from "{module}";\n'
        declaration = build / "static" / VENDOR.name / file.replace(".js", ".d.ts")
        declaration.parent.mkdir(exist_ok=True)
        declaration.write_text(text)


def lint(static: Path) -> int:
    """Have Biome look at the scripts; return 0 if it finds nothing."""
    scripts = sorted(path for path in static.rglob("*.js") if VENDOR.name not in path.parts)
    command = [biome(), "lint", f"--config-path={HERE}", "--colors=off", "--error-on-warnings"]
    return subprocess.run([*command, *scripts], check=False).returncode


def _libraries_and_others(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name == VENDOR.name or Path(name).suffix not in {"", ".js"}}


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


if __name__ == "__main__":
    sys.exit(main())
