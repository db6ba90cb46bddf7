"""Whether an older checkout answers as this one: `python -m tests.same_answers OLD [SAVE.json]`.

The files of the corpus, those of frameworks and the hostile ones go through the commands below in both, each
in a process of its own; what they print, their exit codes and the copies that they write are compared, not
how long opening took. Prints each answer that differs. SAVE.json keeps what OLD answered, and serves as OLD
the next time.
"""

from __future__ import annotations

import difflib
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
FEW: tuple[tuple[str, ...], ...] = (
    ("show", "--json", "FILE"),
    ("check", "--json", "--target", "cpu", "FILE"),
    ("remap", "FILE", "-o", "COPY", "--force"),
)
ALL = (
    *FEW,
    ("show", "FILE"),
    ("check", "--target", "2xcuda", "FILE"),
    ("check", "--full", "--target", "cpu", "FILE"),
    ("check", "--target", "cpu", "--error-text", "RuntimeError: Attempting to deserialize object", "FILE"),
    ("snippet", "--target", "cpu", "FILE"),
    ("remap", "FILE", "--dry-run", "--map", "*=cuda:1"),
    ("remap", "FILE", "-o", "COPY", "--force", "--only", "weights", "--format", "safetensors"),
    ("verify", "COPY", "--against", "FILE"),
    ("diff", "--json", "FILE", "OTHER"),
    ("diff", "FILE", "COPY"),
)
_TIME = re.compile(r'"open_seconds": [\d.e-]+')
_NO_FILES = frozenset({".json", ".md", ".toml", ".txt"})
_MOST_SHOWN = 8


def files() -> list[str]:
    """Return the files of the corpus and of frameworks; those of folders are asked for one by one, too."""
    return sorted(
        str(path)
        for kind in ("corpus", "frameworks")
        for path in (DATA / kind).rglob("*")
        if path.is_file() and path.suffix not in _NO_FILES
    )


def calls(folder: str, hostile: str) -> Iterator[tuple[str, ...]]:
    """Yield the command lines; copies go to one place in a folder."""
    genuine = files()
    for number, path in enumerate(genuine):
        places = {"FILE": path, "OTHER": genuine[number - 1], "COPY": f"{folder}/copy.pth"}
        for words in ALL:
            yield tuple(places.get(word, word) for word in words)
    for path in sorted(map(str, Path(hostile).iterdir())):
        for words in FEW:
            yield tuple({"FILE": path, "COPY": f"{folder}/copy.pth"}.get(word, word) for word in words)


def answer_all(folder: str, hostile: str) -> dict[str, tuple[object, str]]:
    """Run every command line with the program that is imported."""
    from inspector.cli import main

    found: dict[str, tuple[object, str]] = {}
    copy = Path(folder) / "copy.pth"
    os.environ["COLUMNS"] = "100"
    for words in calls(folder, hostile):
        said, failed = io.BytesIO(), io.StringIO()
        shown = io.TextIOWrapper(said, encoding="utf-8", write_through=True)  # which closes what it writes to
        before, sys.stdout, sys.stderr = (sys.stdout, sys.stderr), shown, failed
        if words[0] == "remap":
            copy.unlink(missing_ok=True)
        try:
            code: object = main(list(words))
        except SystemExit as left:
            code = left.code
        finally:
            sys.stdout, sys.stderr = before
        text = _TIME.sub("", said.getvalue().decode("utf-8", "replace")) + "\n" + failed.getvalue()
        if words[0] == "remap" and copy.exists():
            text += hashlib.sha256(copy.read_bytes()).hexdigest()
        name = " ".join(words)
        for place, called in ((str(DATA), "DATA"), (folder, "TMP"), (hostile, "HOSTILE")):
            name, text = name.replace(place, called), text.replace(place, called)
        found[name] = code, text
    return found


def ask(checkout: Path, hostile: str) -> subprocess.Popen[str]:
    code = f"import sys; sys.path.insert(0, {str(checkout)!r}); import inspector, json, runpy, tempfile\n"
    code += f"made = runpy.run_path({__file__!r})['answer_all']\n"
    code += f"with tempfile.TemporaryDirectory() as folder: answers = made(folder, {hostile!r})\n"
    code += "print(json.dumps([inspector.__file__, answers]))"
    return subprocess.Popen([sys.executable, "-P", "-c", code], stdout=subprocess.PIPE, text=True)


def answers_of(asked: subprocess.Popen[str], checkout: Path) -> dict[str, list[object]]:
    where, answers = json.loads(asked.communicate()[0])
    assert where.startswith(str(checkout)), where
    return dict(answers)


def both(old: str, keep: str) -> tuple[dict[str, list[object]], dict[str, list[object]]]:
    """Return what an older checkout answers, and what this one does."""
    with tempfile.TemporaryDirectory() as hostile:
        from tests.hostile.cases import CASES

        for case in CASES:
            (Path(hostile) / f"{case}.pth".replace("/", "-")).write_bytes(case.build())
        asked = ask(ROOT, hostile)
        if old.endswith(".json"):
            before = json.loads(Path(old).read_bytes())
        else:
            before = answers_of(ask(Path(old).resolve(), hostile), Path(old).resolve())
        if keep:
            Path(keep).write_text(json.dumps(before))
        return before, answers_of(asked, ROOT)


def main(old: str, keep: str = "") -> int:
    before, now = both(old, keep)
    differing = [name for name in now if before.get(name) != now[name]]
    for name in differing:
        texts = (str(before.get(name, ["", ""])[1]).split("\n"), str(now[name][1]).split("\n"))
        lines = list(difflib.unified_diff(*texts, "before", "now", n=0, lineterm=""))[:_MOST_SHOWN]
        codes = f"{before.get(name, [None])[0]} {now[name][0]}"
        sys.stdout.write("\n  ".join([name, codes, *(line[:300] for line in lines)]) + "\n")
    sys.stdout.write(f"{len(now)} answers, {len(differing)} differ\n")
    return min(len(differing), 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
