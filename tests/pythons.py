"""Other Pythons on this machine, for what has to run in an environment that is not ours."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from pathlib import Path

VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
THIS = ".".join(map(str, sys.version_info[:2]))


@functools.cache
def find_python(version: str) -> str | None:
    if version == THIS:
        return sys.executable
    found = shutil.which(f"python{version}")
    candidates = [Path(found)] if found else []
    for folder in {path.parent.parent for path in candidates if path.parent.name == "shims"}:
        candidates += sorted(folder.glob(f"versions/{version}.*/bin/python"))
    for candidate in candidates:
        command = [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if answer.stdout.strip() == version:
            return str(candidate)
    return None
