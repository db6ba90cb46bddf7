"""Every command where something around it is wrong: one clear sentence, and the right exit code."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import pytest

from inspector.cli import main
from inspector.cli.commands import COMMANDS
from tests.builders import pickles, zips

FULL = "the output cannot be written: No space left on device"
BYTES = {"remap -o -", "recover -o -"}
"""What goes to standard output is the file itself, which has to arrive whole."""
NUMPY = {"diff --series": 4}
"""What compares numbers says that it needs NumPy."""
PICKLE = pickles.state_dict(w=pickles.tensor(pickles.storage(location="cuda:0"), 2))
LINES = {
    "show": ("show", "{file}"),
    "show --json": ("show", "{file}", "--json"),
    "show a b": ("show", "{file}", "{file}"),
    "check": ("check", "{file}", "--target", "cpu"),
    "check --json": ("check", "{file}", "--target", "cpu", "--json"),
    "check a b": ("check", "{file}", "{file}", "--target", "cpu"),
    "check .": ("check", ".", "--target", "cpu"),
    "check --format": ("check", "{file}", "--target", "cpu", "--format", "concise"),
    "check --filter": ("check", "{file}", "--target", "cpu", "--filter", "w"),
    "remap": ("remap", "{file}", "-o", "{out}.pth"),
    "remap --json": ("remap", "{file}", "-o", "{out}.pth", "--json"),
    "remap -o -": ("remap", "{file}", "-o", "-"),
    "remap --into": ("remap", "{file}", "--into", "{out}"),
    "remap --dry-run": ("remap", "{file}", "--dry-run"),
    "export": ("export", "{file}", "-o", "{out}.pth"),
    "verify": ("verify", "{file}", "--against", "{file}"),
    "diff": ("diff", "{file}", "{file}"),
    "diff --json": ("diff", "{file}", "{file}", "--json"),
    "diff --series": ("diff", "--series", "{file}", "{file}"),
    "recover": ("recover", "{file}", "-o", "{out}.pth"),
    "recover -o -": ("recover", "{file}", "-o", "-"),
    "snippet": ("snippet", "{file}"),
    "snippet -o": ("snippet", "{file}", "-o", "{out}.py"),
    "snippet a b": ("snippet", "{file}", "{file}"),
    "target": ("target", "--target", "cpu"),
    "target --json": ("target", "--target", "cpu", "--json"),
    "target --probe-script": ("target", "--probe-script"),
    "desktop": ("desktop", "remove"),
    "schema": ("schema",),
    "schema show": ("schema", "show"),
    "completion": ("completion", "bash"),
    "help": ("help",),
    "help show": ("help", "show"),
    "show --help": ("show", "--help"),
    "--help": ("--help",),
    "--version": ("--version",),
}
NO = {name for name in LINES if name.startswith("check")}
"""What the answer is no to, with exit code 1, also where nobody hears it."""
SILENT = {"snippet -o", "desktop"}
"""What says nothing where it is done."""
COUNTED = {"snippet a b": "checkpoint-inspector: 2 files: 2 have their code above\n"}
WRITING = {"remap", "remap --json", "export", "recover", "snippet -o"}


class Ran(NamedTuple):
    code: object
    out: bytes
    err: str


def run(words: tuple[str, ...], stdout: IO[str] | None = None, stdin: object = sys.stdin) -> Ran:
    """Run a command in this process with other streams, as `main` finds them in a process of its own."""
    err, taken = io.StringIO(), Path("..", "stdout")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", stdin)
        out = stdout or taken.open("w", encoding="utf-8")
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            code: object = main(list(words))
        except SystemExit as stop:
            code = stop.code
    with contextlib.suppress(OSError):
        out.close()
    return Ran(code, b"" if stdout else taken.read_bytes(), err.getvalue())


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("a.pth").write_bytes(zips.checkpoint(PICKLE, {"0": bytes(8)}))
    return tmp_path / "here"


def each(file: str = "a.pth", out: str = "out") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every line; what it writes is taken away before the next."""
    for name, words in LINES.items():
        yield name, tuple(word.format(file=file, out=out) for word in words)
        for path in Path().iterdir():
            if path.name != Path(file).name:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def is_one_sentence(err: str) -> bool:
    return (
        err.count("\n") == 1 and err.startswith("checkpoint-inspector: error: ") and "unexpected" not in err
    )


def test_every_command_is_in_the_table() -> None:
    rows = {words[0] for words in LINES.values()}
    assert set(COMMANDS) - rows == {"run", "stats", "screenshot"}  # a program, a child process, a window


def test_a_reader_who_leaves_changes_no_exit_code() -> None:
    def left() -> IO[str]:
        reader, writer = os.pipe()
        os.close(reader)
        return os.fdopen(writer, "w")

    wrong = []
    for name, words in each():
        ran = run(words, left())
        if name in BYTES:
            good = ran.code == 4 and ran.err.endswith("cannot be written: Broken pipe: standard output\n")
        else:
            good = ran.code == int(name in NO) and ran.err in {"", COUNTED.get(name, "")}
        if not good:
            wrong.append((name, ran))
    assert wrong == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a file that is always full")
def test_a_full_disk_is_said_once() -> None:
    wrong = []
    for name, words in each():
        ran = run(words, Path("/dev/full").open("w"))  # noqa: SIM115 - `run` closes it
        if name in SILENT:
            good = ran.code == 0
        elif name in BYTES:
            good = ran.code == 4 and ran.err.endswith("No space left on device: standard output\n")
        else:
            good = (ran.code, ran.err) == (4, f"checkpoint-inspector: error: {FULL}\n")
        if not good or (name in BYTES and not is_one_sentence(ran.err)):
            wrong.append((name, ran))
    assert wrong == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse names that are not UTF-8")
def test_any_name_of_a_file_will_do() -> None:
    file = os.fsdecode(b"./-caf\xe9\n \xe2\x80\xae\x1b'; $(x) {x}%s\\n.pth")
    out = os.fsdecode(b"./-o\xe9\n \xe2\x80\xae\x1b'")
    shutil.move("a.pth", file)
    wrong = []
    for name, words in LINES.items():
        ran = run(tuple({"{file}": file}.get(word, word.replace("{out}", out)) for word in words))
        text = ran.out.decode("utf-8", "backslashreplace") if name not in BYTES else ""
        is_clear = not any(char in text + ran.err for char in "\u202e\udce9\x1b")
        is_parsed = "--json" not in name or isinstance(json.loads(text), dict)
        left = ran.err if name not in BYTES | {"snippet a b"} else ""
        if (ran.code, left) != (int(name in NO), "") or not is_clear or not is_parsed:
            wrong.append((name, ran))
        for path in Path().iterdir():
            if path.name != Path(file).name:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert wrong == []


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc takes no file, not even of root")
def test_where_nothing_can_be_written_there_is_one_sentence() -> None:
    wrong = []
    for name, words in each(out="/proc/x"):
        if name not in WRITING | {"remap --into"}:
            continue
        ran = run(words)
        if ran.code != 4 or not is_one_sentence(ran.err) or "/proc" not in ran.err:
            wrong.append((name, ran))
    assert wrong == []


def test_without_standard_input_all_but_what_reads_it_is_as_ever() -> None:
    wrong = []
    for name, words in each():
        if run(words, stdin=None).code != int(name in NO):
            wrong.append(name)
    for command in ("show", "check"):
        ran = run((command, "-", "--target", "cpu") if command == "check" else (command, "-"), stdin=None)
        if ran.code != 3 or not is_one_sentence(ran.err):
            wrong.append(ran)
    assert wrong == []


WINDOW = ("PySide6", "shiboken6", "pyqtgraph")
QT = "'PySide6-Essentials<6.12'" if sys.version_info < (3, 12) else "PySide6-Essentials"
NEEDED = (
    "checkpoint-inspector: error: the window needs PySide6 and pyqtgraph, which are not installed "
    f"(for this Python: {sys.executable} -m pip install {QT} pyqtgraph)"
)


def codes_without(blocked: tuple[str, ...], lines: list[tuple[str, ...]]) -> tuple[list[int], str]:
    """Run lines in one process in which modules cannot be imported; return exit codes, and stderr."""
    code = (
        "import sys, json\n"
        "lines, blocked = json.loads(sys.argv[1])\n"
        "for name in blocked: sys.modules[name] = None\n"
        "from inspector.cli import main\n"
        "for words in lines:\n"
        "    try: code = main(words)\n"
        "    except SystemExit as stop: code = stop.code or 0\n"
        "    print(f'\\n@{code}')\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, json.dumps([lines, blocked])],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "QT_QPA_PLATFORM": "offscreen"},
    )
    return [int(line[1:]) for line in answer.stdout.splitlines() if line.startswith("@")], answer.stderr


def test_no_command_needs_torch_unless_it_asks_torch() -> None:
    """One process for all of them: whatever imports torch, numpy or Qt ends in an error."""
    lines = {
        name: tuple(word.format(file="a.pth", out=f"out{number}") for word in words)
        for number, (name, words) in enumerate(LINES.items())
        if name not in BYTES
    }
    codes, err = codes_without(("torch", "numpy", *WINDOW), [*lines.values()])
    expected = {name: int(name in NO) for name in lines}
    assert dict(zip(lines, codes, strict=True)) == expected | NUMPY
    assert "error" not in err.replace("error: this needs NumPy", "")


def test_without_the_window_only_the_window_is_missing() -> None:
    """A cluster has no use for 80 MB of Qt; where a window is asked for, one line says how to get it."""
    works = [
        ("stats", "a.pth", "w"),
        ("stats", "a.pth", "--scan"),
        ("diff", "a.pth", "a.pth", "--compare", "numbers"),
        ("diff", "--series", "a.pth", "a.pth"),
        ("screenshot", "a.pth", "small.png", "--thumbnail", "64"),
        ("run", "--", sys.executable, "-c", ""),
    ]
    opens = [("a.pth",), ("--demo",), ("screenshot", "a.pth", "big.png"), ("desktop", "install")]
    codes, err = codes_without(WINDOW, [*works, *opens])
    assert codes == [0] * len(works) + [2] * len(opens)
    assert err.splitlines().count(NEEDED) == len(opens)
    assert not Path("big.png").exists()
