"""Whether an older checkout answers as this one: `python -m tests.same_answers OLD`.

Every file of the corpus goes through the commands below in both, each in a process of its own; what they
print and their exit codes are compared, but for how long opening took. Prints each answer that differs.
"""

from __future__ import annotations

import difflib
import io
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "tests" / "data" / "corpus"
COMMANDS = (
    ("show", "--json"),
    ("show",),
    ("check", "--json", "--target", "cpu"),
    ("check", "--target", "2xcuda"),
    ("snippet", "--target", "cpu"),
)
_TIME = re.compile(r'"open_seconds": [\d.e-]+')
_NO_FILES = frozenset({".json", ".md", ".toml", ".txt"})
_MOST_SHOWN = 8


def files() -> list[str]:
    """Return the files of the corpus; those of folders are asked for one by one, too."""
    return sorted(str(path) for path in CORPUS.rglob("*") if path.is_file() and path.suffix not in _NO_FILES)


def answer_all() -> dict[str, tuple[object, str]]:
    """Run every command on every file with the program that is imported."""
    from inspector.cli import main

    found: dict[str, tuple[object, str]] = {}
    for path in files():
        for command, *options in COMMANDS:
            said = io.BytesIO()
            shown = io.TextIOWrapper(
                said, encoding="utf-8", write_through=True
            )  # which closes what it writes to
            before, sys.stdout = sys.stdout, shown
            try:
                code: object = main([command, path, *options])
            except SystemExit as left:
                code = left.code
            finally:
                sys.stdout = before
            text = _TIME.sub("", said.getvalue().decode("utf-8", "replace"))
            found[" ".join([command, *options, path.removeprefix(str(CORPUS))])] = code, text
    return found


def ask(checkout: Path) -> dict[str, list[object]]:
    """Return the answers of a checkout."""
    code = f"import sys; sys.path.insert(0, {str(checkout)!r}); import inspector, json, runpy; "
    code += (
        f"made = runpy.run_path({__file__!r})['answer_all'](); print(json.dumps([inspector.__file__, made]))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    where, answers = json.loads(done.stdout)
    assert where.startswith(str(checkout)), where
    return answers


def main(old: str) -> int:
    """Compare, and return how many answers differ, at most 1."""
    before, now = ask(Path(old).resolve()), ask(ROOT)
    differing = [name for name in before if before[name] != now[name]]
    for name in differing:
        texts = (str(before[name][1]).split("\n"), str(now[name][1]).split("\n"))
        lines = list(difflib.unified_diff(*texts, "before", "now", n=0, lineterm=""))[:_MOST_SHOWN]
        sys.stdout.write("\n  ".join([name, f"{before[name][0]} {now[name][0]}", *lines]) + "\n")
    sys.stdout.write(f"{len(before)} answers, {len(differing)} differ\n")
    return min(len(differing), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
