"""Every text of a file of every format with control characters in it, through every command that reads files.

Each word that stands in a record is replaced by one of its length that clears a screen and ends a line; in
JSON, whose texts spell such characters, by a longer one. Whether the file can still be read is all the same:
what is said of one that cannot be read passes the same door.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import re
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.one_byte import samples
from tests.sweep import tries
from tests.unit.report.rows import is_harmless

pytestmark = pytest.mark.torch
EVIL = "\x1b[2J\nSAFE\x9b\r\u2028"
WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_.]{3,60}")
COMMANDS = (
    ("show",),
    ("show", "--all"),
    ("check", "--target", "cpu"),
    ("check", "--target", "cuda:1"),
    ("snippet",),
    ("stats", "--scan"),
    ("remap", "--dry-run", "--map", "*=cpu"),
    ("remap", "-o", "out", "--force", "--map", "*=cpu"),
    ("recover", "-o", "rec", "--force"),
    ("verify", "--against"),
    ("diff",),
)
PACKINGS: dict[bytes, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": (gzip.decompress, gzip.compress),
    b"BZh": (bz2.decompress, bz2.compress),
    b"\xfd7zXZ": (lzma.decompress, lzma.compress),
    b"x\x9c": (zlib.decompress, zlib.compress),
}
Field = tuple[str, bytes]


def fields(data: bytes, where: str = "") -> Iterator[Field]:
    """Every word of a file, with the record in which it stands."""
    for begin, (unpack, _) in PACKINGS.items():
        if data.startswith(begin):
            data = unpack(data)
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            for name in file.namelist():
                yield f"{where}{name}/", b""
                yield from fields(file.read(name), f"{where}{name}/")
    elif tarfile.is_tarfile(io.BytesIO(data)):
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            for member in tar.getmembers():
                yield f"{where}{member.name}/", b""
                if member.isfile():
                    yield from fields(tar.extractfile(member).read(), f"{where}{member.name}/")
    else:
        yield from ((where, word) for word in dict.fromkeys(WORD.findall(data[: 1 << 16])))


def spoiled(data: bytes, field: Field) -> bytes:
    """A file with that word replaced in that record, or the name of the record where it is none."""
    for begin, (unpack, pack) in PACKINGS.items():
        if data.startswith(begin):
            return pack(spoiled(unpack(data), field))
    word = field[1]
    if data.startswith(b"PK"):
        return _spoiled_zip(data, field)
    if tarfile.is_tarfile(io.BytesIO(data)):
        return _spoiled_tar(data, field)
    if data[8:9] == b"{":  # safetensors
        header = _spoiled_json(data[8 : 8 + int.from_bytes(data[:8], "little")], word)
        return len(header).to_bytes(8, "little") + header + data[8 + int.from_bytes(data[:8], "little") :]
    return _spoiled_json(data, word) if data.lstrip()[:1] == b"{" else data.replace(word, _like(word))


def _like(word: bytes) -> bytes:
    """The beginning of what is evil in as many bytes; the first letter stays, since it may tell a path."""
    return (word[:1] + EVIL.encode() * 8)[: len(word) - 1] + b"z" if len(word) > 1 else word


def _spoiled_json(data: bytes, word: bytes) -> bytes:
    return data.replace(word, json.dumps(word[:1].decode() + EVIL)[1:-1].encode())


def _spoiled_zip(data: bytes, field: Field) -> bytes:
    where, word = field
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(out, "w") as after:
        for name in before.namelist():
            record, rest = before.read(name), where.removeprefix(f"{name}/")
            if where != rest:
                record = spoiled(record, (rest, word)) if word else record
            after.writestr(name if word or where == rest else f"{name}{EVIL}", record)
    return out.getvalue()


def _spoiled_tar(data: bytes, field: Field) -> bytes:
    where, word = field
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(data)) as before, tarfile.open(fileobj=out, mode="w") as after:
        for member in before.getmembers():
            record = before.extractfile(member).read() if member.isfile() else b""
            rest = where.removeprefix(f"{member.name}/")
            if where != rest:
                record = spoiled(record, (rest, word)) if word else record
                member.name += "" if word else EVIL
            member.size = len(record)
            after.addfile(member, io.BytesIO(record))
    return out.getvalue()


def cases(path: Path) -> list[tuple[str, Field]]:
    """Every field of a file, or of every file of a folder."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [
        ("" if file == path else str(file.relative_to(path)), field)
        for file in files
        if file.is_file()
        for field in fields(file.read_bytes())
    ]


def test_no_field_of_any_format_gives_the_terminal_an_order(cli, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").mkdir()
    chance = random.Random(25)
    wrong, said, turn = [], set(), 0
    for form, path in samples(tmp_path / "samples"):
        chosen = cases(path)
        for name, field in chance.sample(chosen, min(len(chosen), tries(12, 10_000))):
            copy = tmp_path / f"copy{path.suffix}"
            if path.is_dir():
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(path, copy)
            (copy / name if name else copy).write_bytes(
                spoiled((path / name if name else path).read_bytes(), field)
            )
            for words in tries((COMMANDS[turn % len(COMMANDS)], COMMANDS[3]), COMMANDS):
                turn += 1
                begin = (words[0], copy.name, *words[1:])
                answer = cli(*begin, *((path,) if words[0] in {"verify", "diff"} else ()))
                lines = [
                    line
                    for line in (answer.out + answer.err).split("\n")
                    if not is_harmless(line) or line.startswith("SAFE")
                ]
                said |= {form} if "\\u001b[2J" in answer.out + answer.err else set()
                if lines or "unexpected" in answer.err:
                    wrong.append((form, name, field, words, lines[:2], answer.err[:300]))
            if copy.is_file():
                copy.unlink()
    assert wrong == []
    assert len(said) >= 10, "formats of which such a word was shown"
