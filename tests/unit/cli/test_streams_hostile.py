"""Files that attack us through a pipe, a redirection and a folder of copies: judged as by their names."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.builders import pickles, zips
from tests.sweep import put_through

CORPUS = Path(__file__).parents[2] / "data" / "corpus" / "hostile"
GOOD = zips.checkpoint(
    pickles.state_dict(w=pickles.tensor(pickles.storage(location="cuda:0"), 2)), {"0": bytes(8)}
)
EVIL = pickles.stream(pickles.call("os.system", pickles.text("touch pwned")))
FILES = {
    **{path.name: path.read_bytes() for path in sorted(CORPUS.glob("*.pt"))},
    "evil.pth": zips.checkpoint(EVIL, {}),
    "evil.pkl": EVIL,
    "packed.pth.gz": gzip.compress(zips.checkpoint(EVIL, {}), mtime=0),
    "cut.pth": GOOD[: len(GOOD) // 2],
    "longer.pth": GOOD + bytes(100),
    "twice.pth": GOOD + GOOD,
    "before.pth": b"#!/bin/sh\n" + GOOD,
    "bomb.gz": gzip.compress(bytes(2_000_000), mtime=0),
    "header.safetensors": (1 << 40).to_bytes(8, "little") + b"{}",
    "zeros.pt": bytes(4096),
    "page.pth": b"<!DOCTYPE html><html><body>Sign in</body></html>" * 5,
    "pointer.pth": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
}


@contextmanager
def stdin(file: object) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", file)
        yield


def judged(answer: Any) -> tuple[int, str]:
    """What an answer says of a file, without its name."""
    document = json.loads(answer.out)
    name = document.pop("path")
    text = json.dumps(document)
    return answer.code, text.replace(json.dumps(name)[1:-1], "FILE") if name != "-" else text


def without_names(judgment: tuple[int, str]) -> tuple[int, dict[str, Any]]:
    """The part that holds no line to be pasted: those name the file."""
    document = json.loads(judgment[1])
    kept = ("loads", "safe", "error", "safety", "format")
    found = {key: document.get(key) for key in kept}
    if isinstance(found["error"], dict):
        found["error"].pop("where")
    return judgment[0], {**found, "findings": [row["id"] for row in document["findings"]]}


def test_a_pipe_hides_nothing(cli, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)

    def check(name: str) -> None:
        path = Path(name)
        path.write_bytes(FILES[name])
        words = ("check", "--target", "cpu", "--json")
        named = without_names(judged(cli(*words, path)))
        with path.open("rb") as file, stdin(file):
            redirected = without_names(judged(cli(*words, "-")))
        reader, writer = os.pipe()
        os.write(writer, FILES[name][:60_000])
        os.close(writer)
        with os.fdopen(reader, "rb") as file, stdin(file):
            piped = without_names(judged(cli(*words, "-")))
        assert redirected == piped == named, (named, redirected, piped)
        path.unlink()

    put_through(check, FILES, every=2)
    assert list(tmp_path.iterdir()) == []


def test_what_is_hostile_stops_no_other_copy_and_leaves_no_folder(cli, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    precious = tmp_path / "precious"
    precious.write_bytes(b"mine")
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    for name, data in {**FILES, "good.pth": GOOD, "last.pth": GOOD}.items():
        Path("in", name).write_bytes(data)
    Path("out", "good.pth").symlink_to(precious)
    Path("in", "loop.pth").symlink_to("loop.pth")
    os.mkfifo("in/pipe.pth")
    files = [
        Path("in", name) for name in ("good.pth", *FILES, "loop.pth", "pipe.pth", "gone.pth", "last.pth")
    ]
    answer = cli("remap", *files, "--into", "out")
    assert (answer.code, "already exists" in answer.err) == (4, True)
    answer = cli("remap", *files, "--into", "out", "--force")
    assert answer.code >= 3
    assert answer.out.splitlines()[-1].startswith(f"{len(files)} files: ")
    assert "unexpected" not in answer.err
    assert precious.read_bytes() == b"mine"
    assert not Path("pwned").exists()
    assert not Path("out", "good.pth").is_symlink()
    for name in ("good.pth", "last.pth"):
        assert cli("verify", Path("out", name), "--against", "in", "--map", "*=cpu").code == 0
    written = {path.name for path in Path("out").iterdir()}
    assert not any(name.startswith(".") for name in written)
    assert written < {"good.pth", "last.pth", *FILES, "packed.pth", "bomb"}
    for name in written:  # a copy is as dangerous as its file, and is not called anything else
        before, after = (cli("show", Path(folder, name), "--json").out for folder in ("in", "out"))
        if (Path("in") / name).exists():
            verdicts = [json.loads(text)["safety"]["verdict"] for text in (before, after)]
            assert verdicts[0] == verdicts[1], name


def test_places_that_are_no_files_take_no_copy(cli, tmp_path) -> None:
    source = tmp_path / "good.pth"
    source.write_bytes(GOOD)
    said = {}
    for kind in ("folder", "pipe", "dangling", "link to itself"):
        out = tmp_path / kind
        out.mkdir()
        place = out / "good.pth"
        if kind == "folder":
            place.mkdir()
        elif kind == "pipe":
            os.mkfifo(place)
        else:
            place.symlink_to("nowhere" if kind == "dangling" else "good.pth")
        answer = cli("remap", source, "--into", out)
        said[kind] = (answer.code, answer.out, answer.err.count("\n"))
    assert set(said.values()) == {(4, "", 1)}
