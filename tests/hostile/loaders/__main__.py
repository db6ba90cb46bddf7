"""Writes the table of readers and loaders: `python -m tests.hostile.loaders [READER ...]`."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.hostile.loaders.test_loaders import CASES, WRONG, answers


def main() -> None:
    rows: dict[tuple[str, str], Counter[str]] = {}
    lines = []
    cases = [case for case in CASES if case.reader in sys.argv[1:] or not sys.argv[1:]]
    with tempfile.TemporaryDirectory() as name:
        found = answers(cases, Path(name))
    for case, (ran, verdict) in zip(cases, found, strict=True):
        rows.setdefault((case.reader, case.loader), Counter()).update((ran, verdict))
        if verdict in WRONG or ran == "did not run":
            lines.append(f"FAILED {case.reader}: {case.name} ({case.loader}): {ran}, {verdict}")
    lines.append("| reader | loader | payloads that ran | called safe | refused without a warning |")
    lines.append("| --- | --- | ---: | ---: | ---: |")
    rows["all", ""] = sum(rows.values(), Counter())
    for (reader, loader), counts in sorted(rows.items()):
        numbers = (str(counts[word]) for word in ("ran", "weights-only", "refused"))
        lines.append(f"| {reader} | `{loader}` | {' | '.join(numbers)} |".replace(" ``", ""))
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
