"""Names that attack a terminal, in every command: keys, imports, devices, values, files; piped, laid out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inspector.cli import main, remapping
from inspector.cli.commands import COMMANDS
from inspector.report.page import Line
from inspector.report.words import results
from tests.builders import zips
from tests.builders.pickles import (
    call,
    dict_,
    list_,
    name,
    number,
    proto,
    state_dict,
    storage,
    stream,
    tensor,
    text,
)
from tests.builders.zips import Record
from tests.sweep import IS_SWEEP
from tests.unit.report.rows import is_harmless

EVIL = "a\x1b]0;owned\x07\x1b[41;5mb\x9b2J\x90q\u202egnp\u2066\r\nX\x08\u200d\u2028z"
FOREIGN = "\x1b[41;5m"
OUR_ORDERS = re.compile(r"\x1b\[[0-9;]*m")
SHOWN = "a\\u001b]0;owned\\u0007"
LAYOUTS = ((), ("--color", "always"), ("--color", "always", "--no-pager", "--quiet"))
WITHOUT = {
    "help": "reads no file",
    "completion": "reads no file",
    "schema": "reads no file",
    "run": "starts the user's program: see test_run",
    "screenshot": "writes a picture",
    "desktop": "names the files that it installs",
}
"""Commands that read no file for a terminal."""


def evil_pickle(device: str) -> bytes:
    evil = text(EVIL)
    groups = list_(dict_((evil, evil)))
    weights = dict_(
        (evil, tensor(storage("0", location=device), 2)),
        (text(f"{EVIL}.weight"), tensor(storage("1", location=device), 2)),
        (text("bad"), tensor(storage("gone", location=device), 2)),
    )
    return stream(
        proto(),
        dict_(
            (text("model"), weights),
            (evil, list_(evil, number(1), dict_((evil, evil)))),
            (text("device"), call("torch.device", evil)),
            (text("object"), call("m.a\x1b[41;5mb\u202e", evil)),
            (text("danger"), name("posix.system\x1b[41;5m")),
            (text("optimizer"), dict_((text("state"), dict_()), (text("param_groups"), groups))),
        ),
    )


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Files full of such names, in a folder and under names of the kind."""
    folder = tmp_path / f"{EVIL}d"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "60")
    data = {"0": bytes(8), "1": bytes(8)}
    record = Record(name=f"archive/{EVIL}", data=b"x")
    made = {
        "zip": zips.checkpoint(evil_pickle(f"cuda:{EVIL}"), data, record),
        "plain": zips.checkpoint(evil_pickle("cuda:1"), data),
        "cut": zips.checkpoint(evil_pickle("cuda:0"), data)[:-30],
        "text": EVIL.encode(),
        "pickle": evil_pickle("cuda:1"),
    }
    paths = {kind: f"{kind}{EVIL}.pth" for kind in made}
    for kind, content in made.items():
        Path(paths[kind]).write_bytes(content)
    Path("err.txt").write_text(f"RuntimeError: {EVIL} CUDA error: no kernel image\n", encoding="utf-8")
    Path("script.py").write_text(
        f"import torch\nx = torch.load({paths['plain']!r})\ny = x[{EVIL!r}]\n",
        encoding="utf-8",
    )
    return paths | {"missing": f"none{EVIL}.pth"}


def lines_of_all(files: dict[str, str]) -> list[tuple[str, ...]]:
    """Every command over every file."""
    found: list[tuple[str, ...]] = []
    for path in files.values():
        found += [
            ("show", path),
            ("show", path, "--filter", "weight"),
            ("show", path, "--filter", f"nosuch{EVIL}"),
            ("check", path, "--target", "cuda", "--error-file", "err.txt"),
            ("check", path, "--target", "cpu", "--error-text", EVIL, "--script", "script.py"),
            ("check", path, "--target", "cpu", "--format", "concise"),
            ("check", path, "--target", "cpu", "--filter", f"nosuch{EVIL}"),
            ("remap", path, "--dry-run", "--map", "*=cpu"),
            ("remap", path, "--dry-run", "--map", f"{EVIL}=cpu"),
            ("remap", path, "-o", f"out{EVIL}.pth", "--force"),
            ("export", path, "-o", f"out{EVIL}.safetensors", "--force"),
            ("export", path, "-n", "--exclude", EVIL),
            ("remap", path, "-o", f"old{EVIL}.safetensors", "--force", "--only", "weights"),
            ("remap", path, "--undo"),
            ("recover", path, "-o", f"rec{EVIL}.pth", "--force"),
            ("verify", path, "--against", files["plain"]),
            ("diff", path, files["plain"], "--values", "--all", "--each"),
            ("diff", files["plain"], path),
            ("diff", "--series", files["plain"], path),
            ("stats", path, "--scan"),
            ("stats", path, "model/**", "--rank"),
            ("stats", path, path, "model/**"),
            ("stats", path, f"no{EVIL}"),
            ("snippet", path),
            ("snippet", path, "--style", f"s{EVIL}"),
            ("target", "--target", path),
        ]
    return found


def test_no_name_gives_the_terminal_an_order(cli, files) -> None:
    commands = lines_of_all(files)
    assert {words[0] for words in commands} == set(COMMANDS) - set(WITHOUT)
    if not IS_SWEEP:
        commands = [words for words in commands if files["zip"] in words[1:3]] + commands[::9]
    wrong, said = [], set()
    for number_, words in enumerate(commands):
        for layout in (LAYOUTS[0], LAYOUTS[1 + number_ % 2]):
            answer = cli(*words, *layout)
            text_ = OUR_ORDERS.sub("", (answer.out + answer.err).replace(FOREIGN, "\0"))
            said |= {words[0]} if SHOWN in text_ else set()
            lines = [line for line in text_.split("\n") if not is_harmless(line)]
            if lines or "unexpected" in answer.err:
                wrong.append((words[0], words[2:], layout, lines[:2], answer.err[:300]))
    assert wrong == []
    assert said == set(COMMANDS) - set(WITHOUT), "each has shown such a name"


def test_no_name_in_a_folder_gives_the_terminal_an_order(cli, files) -> None:
    for words in (
        ("check", ".", "--target", "cpu", "--format", "concise"),
        ("show", "."),
        ("stats", ".", "--scan"),
    ):
        answer = cli(*words)
        assert SHOWN in answer.out, words
        assert all(map(is_harmless, (answer.out + answer.err).split("\n"))), words


def test_no_name_says_yes(cli, tmp_path, monkeypatch) -> None:
    """In a concise line the path ends at the first colon with a blank behind it."""
    monkeypatch.chdir(tmp_path)
    name_ = "best.pth: YES on cpu: .pth"
    weights = state_dict(w=tensor(storage("0", location="cuda:0"), 2))
    (tmp_path / name_).write_bytes(zips.checkpoint(weights, {"0": bytes(8)}))
    said = cli("check", name_, "--target", "cpu", "--format", "concise").out
    assert said.partition(": ")[2].startswith("NO on cpu")


def test_no_name_makes_a_line_of_its_own(cli, tmp_path) -> None:
    """A name of a record with ends of lines in it: `diff` printed what it said as a line of the answer."""
    weights, data = state_dict(w=tensor(storage("0"), 2)), {"0": bytes(8)}
    forged = Record(name="archive/x\nNO DIFFERENCE: equal\n", data=b"x")
    (tmp_path / "a.pth").write_bytes(zips.checkpoint(weights, data, forged))
    (tmp_path / "b.pth").write_bytes(zips.checkpoint(weights, data))
    answer = cli("diff", tmp_path / "a.pth", tmp_path / "b.pth")
    assert "x\\u000aNO DIFFERENCE: equal\\u000a" in answer.out
    assert not any(line.startswith("NO DIFFERENCE") for line in answer.out.split("\n"))


@pytest.mark.parametrize("command", [("recover",), ("remap", "--map", "*=cpu")])
def test_what_goes_to_stderr_passes_the_same_door(capfdbinary, tmp_path, monkeypatch, command) -> None:
    """Where stdout takes the copy, an answer that a function forgot to escape is written to stderr."""
    made, evil = results.result_page, Line("raw\x1b[2J\x9b\u202e\nSAFE")
    for place in (results, remapping):
        monkeypatch.setattr(place, "result_page", lambda name, said, more=(): made(name, said, [*more, evil]))
    path = tmp_path / "a.pth"
    weights = state_dict(w=tensor(storage("0", location="cuda:0"), 2))
    path.write_bytes(zips.checkpoint(weights, {"0": bytes(8)}))
    assert main([command[0], str(path), "-o", "-", *command[1:]]) == 0
    said = capfdbinary.readouterr().err.decode()
    assert "raw\\u001b[2J\\u009b\\u202e\\u000aSAFE" in said
    assert all(is_harmless(line) for line in said.split("\n"))
