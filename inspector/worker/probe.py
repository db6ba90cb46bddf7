"""Runs the stand-alone probe, which is text that people read and run elsewhere, and speaks no protocol.

Head: `script`, its path. Answer: the document that it prints, as the block.
"""

from __future__ import annotations

import json
import runpy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def answer(head: dict[str, str], _blocks: Iterator[bytes]) -> Iterator[tuple[dict[str, str], bytes]]:
    """Probe this machine; torch is imported in a process of its own, each time."""
    script = head["script"]
    yield {}, json.dumps(runpy.run_path(script)["probe"](script)).encode()
