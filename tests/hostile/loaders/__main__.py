"""Writes the table of readers and loaders: `python -m tests.hostile.loaders [READER [NAME]]`."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.hostile.loaders.case import runs
from tests.hostile.loaders.test_loaders import CASES, WRONG, judged


def main() -> None:
    rows: dict[tuple[str, str], Counter[str]] = {}
    lines = []
    for case in CASES:
        if not f"{case.reader} {case.name}".startswith(" ".join(sys.argv[1:])):
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "home").mkdir()
            path = case.write(folder / "home")
            ran = "cited" if case.source else "ran" if runs(case, path, folder / "run") else "did not run"
            verdict = judged(path)
        rows.setdefault((case.reader, case.loader), Counter()).update((ran, verdict))
        if verdict in WRONG or ran == "did not run":
            lines.append(f"FAILED {case.reader}: {case.name} ({case.loader}): {ran}, {verdict}")
    lines.append("| reader | loader | payloads that ran | cited | called safe | refused without a warning |")
    lines.append("| --- | --- | ---: | ---: | ---: | ---: |")
    rows["all", ""] = sum(rows.values(), Counter())
    for (reader, loader), counts in sorted(rows.items()):
        numbers = (str(counts[word]) for word in ("ran", "cited", "weights-only", "refused"))
        lines.append(f"| {reader} | `{loader}` | {' | '.join(numbers)} |".replace(" ``", ""))
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
