"""What the probe says of this machine, asked once: it imports torch in a child, which takes over a second."""

from __future__ import annotations

import functools
import subprocess
import sys

from inspector.resources import PROBE, resource_path


@functools.cache
def probed() -> bytes:
    """Return the line that the probe prints, as its user saves it."""
    command = [sys.executable, "-S", str(resource_path(PROBE))]
    return subprocess.run(command, capture_output=True, check=True).stdout.splitlines()[-1]
