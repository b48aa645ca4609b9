"""The hook that hatchling runs: it stores the commit in sdists and wheels, and an SBOM in wheels.

The commit is ``BARNABAS_COMMIT``, or that of the sdist that is built from, or the checkout's.
The SBOM (CycloneDX, PEP 770) lists the JavaScript libraries that a wheel contains; a wheel's Python
dependencies are in its metadata and not in its files.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMMIT_IN_SDIST = os.path.join("src", "barnabas", "commit")
COMMIT_IN_WHEEL = os.path.join("barnabas", "commit")
VENDOR_TABLE = os.path.join("broker", "console", "static", "vendor", "vendor.json")
GIT_TIMEOUT_S = 60


class BarnabasBuildHook(BuildHookInterface[Any]):
    """Hook of the sdist and of the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files to what is built; an editable install reads its checkout instead."""
        if version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        commit = self._commit()
        if commit is not None and not os.path.exists(os.path.join(self.root, COMMIT_IN_SDIST)):
            target = COMMIT_IN_SDIST if self.target_name == "sdist" else COMMIT_IN_WHEEL
            build_data["force_include"][self._write("commit", commit + "\n")] = target
        if self.target_name == "wheel":
            text = json.dumps(self._sbom(commit), indent=2, sort_keys=True) + "\n"
            build_data["sbom_files"].append(self._write("barnabas.cdx.json", text))

    def finalize(self, version: str, *_: object) -> None:
        """Remove the temporary files."""
        if version != "editable":
            self._folder.cleanup()

    def _write(self, name: str, text: str) -> str:
        path = os.path.join(self._folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def _commit(self) -> str | None:
        """Return the commit of what is built, or None after a warning."""
        given = os.environ.get("BARNABAS_COMMIT")
        if given:
            return given
        in_sdist = os.path.join(self.root, COMMIT_IN_SDIST)
        if os.path.exists(in_sdist):
            with open(in_sdist, encoding="utf-8") as file:
                return file.read().strip()
        # Not of a repository around an unpacked sdist.
        if os.path.exists(os.path.join(self.root, ".git")):
            command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
            result = subprocess.run(  # noqa: S603 - no part comes from outside
                command,
                cwd=self.root,
                capture_output=True,
                text=True,
                timeout=GIT_TIMEOUT_S,
                check=False,
            )
            if result.returncode == 0:
                return result.stdout.strip()
        self.app.display_warning(
            f"the commit of {self.root} is unknown; set BARNABAS_COMMIT to store it in the build"
        )
        return None

    def _sbom(self, commit: str | None) -> dict[str, Any]:
        """Return the CycloneDX document; the same sources always give the same text."""
        metadata = self.metadata
        own = {
            "type": "application",
            "bom-ref": f"pkg:pypi/barnabas@{metadata.version}",
            "purl": f"pkg:pypi/barnabas@{metadata.version}",
            "name": "barnabas",
            "version": metadata.version,
            "licenses": [{"license": {"id": "Apache-2.0"}}],
            "properties": [{"name": "barnabas:commit", "value": commit or "unknown"}],
        }
        path = os.path.join(self.root, "src", "barnabas", VENDOR_TABLE)
        with open(path, encoding="utf-8") as file:
            components = [_component(row) for row in json.load(file)]
        references = [each["bom-ref"] for each in components]
        return {
            "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {"component": own},
            "components": components,
            "dependencies": [{"ref": own["bom-ref"], "dependsOn": references}],
        }


def _component(row: dict[str, Any]) -> dict[str, Any]:
    name = row["package"].replace("@", "%40")
    purl = f"pkg:npm/{name}@{row['version']}"
    return {
        "type": "library",
        "bom-ref": purl,
        "purl": purl,
        "name": row["package"],
        "version": row["version"],
        "licenses": [{"license": {"id": row["licence"]}}],
        "hashes": [{"alg": "SHA-512", "content": row["tarball_sha512"]}],
    }
