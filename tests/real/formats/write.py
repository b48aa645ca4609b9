"""``python -m tests.real.formats.write``: write the directories of the current version.

It refuses to replace a file: what was released stays as it is.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from barnabas.broker.version import __version__
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.interop.recorded_directory import pack
from tests.real.formats.contents import SETTINGS, fill, observe

FOLDER = Path(__file__).parent / "released"
ENDS = ("stopped", "killed")


def main() -> int:
    """Write both archives, and the observation of each."""
    for end in ENDS:
        path = FOLDER / f"barnabas-{__version__}-{end}"
        if path.with_suffix(".json").exists():
            print(f"{path.with_suffix('.json')} exists; a release never changes", file=sys.stderr)
            return 1
    for end in ENDS:
        write(FOLDER / f"barnabas-{__version__}-{end}", end)
    return 0


def write(path: Path, end: str) -> None:
    """Fill a broker, end it, and keep its directory and what clients saw of it."""
    path.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        broker = BarnabasProcess(
            Path(scratch), **{k.replace(".", "_"): v for k, v in SETTINGS.items()}
        )
        with broker:
            fill(broker)
            observed = observe(broker)
            if end == "stopped":
                assert broker.terminate() == 0
            else:
                broker.kill()
            pack(broker.data_directory, Path(f"{path}.tar.xz"))
    text = json.dumps(observed, indent=1, sort_keys=True) + "\n"
    Path(f"{path}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
