"""The table of makers, and where they put their files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.frameworks.oracle import Truth, describe, describe_safetensors


class Out:
    """Takes the files of one maker, made in an empty folder, with what the live objects say of them."""

    def __init__(self, root: Path, framework: str, scratch: Path) -> None:
        self._root = root
        self._framework = framework
        self.scratch = scratch

    def add(self, source: Path | str, name: str, truth: Truth, container: str = "zip") -> Path:
        """Keep a file under this name with its oracle; returns where."""
        kept = self.keep(source, name)
        is_plain = container == "safetensors"
        facts = describe_safetensors(kept, truth) if is_plain else describe(kept, truth, container)
        return self._note(name, facts, kept)

    def say(self, source: Path | str, name: str, facts: dict[str, object]) -> Path:
        """Keep a file that torch does not load, with an oracle of its maker's own."""
        return self._note(name, facts, self.keep(source, name))

    def keep(self, source: Path | str, name: str) -> Path:
        """Keep a file that only stands beside others."""
        kept = self._root / self._framework / name
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, kept)
        return kept

    def _note(self, name: str, facts: dict[str, object], kept: Path) -> Path:
        full = f"{self._framework}/{name}"
        oracle = self._root / "oracle" / f"{full.replace('/', '__')}.json"
        oracle.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"file": full, **facts}, ensure_ascii=False)
        oracle.write_text(text + "\n", encoding="utf-8")
        return kept


Maker = Callable[[Out], None]
MAKERS: dict[str, Maker] = {}


def maker(name: str) -> Callable[[Maker], Maker]:
    """Enter a function that makes files, under `framework/what`."""

    def enter(function: Maker) -> Maker:
        MAKERS[name] = function
        return function

    return enter
