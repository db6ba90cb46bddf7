"""Folders that attack whoever opens them: each ends in a sentence or in rows, and is called what it is."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.safety.verdict import judge
from tests.builders.archives import archive
from tests.builders.folders import shard, sharded, trainer, two_shards
from tests.builders.pickles import call, dict_, number, proto, storage, stream, tensor, text
from tests.builders.safetensors import model, row, safetensors

ONE, TWO = (f"pytorch_model-0000{number}-of-00002.bin" for number in (1, 2))
PAYLOAD = archive(stream(proto(), call("os.system", text("true"))), {})
BROKEN = archive(stream(proto(), call("os.system", text("true")) + b"\xff"), {})
Build = Callable[[Path], object]


def _pointing(*places: str) -> Build:
    """An index whose tensors are in files of these names, beside one sound shard."""
    names = {f"t{index}": place for index, place in enumerate(places)}
    return lambda folder: sharded(folder, {ONE: shard("a")}, {"a": ONE, **names})


def _secret(folder: Path) -> None:
    (folder.parent / "secret.bin").write_bytes(shard("secret"))
    sharded(folder, {ONE: shard("a")}, {"a": ONE, "secret": "link.bin", "far": "far.bin"})
    (folder / "link.bin").symlink_to("../secret.bin")
    (folder / "far.bin").symlink_to(folder.parent / "secret.bin")


def _odd_kinds(folder: Path) -> None:
    places = {"a": ONE, "b": "pipe.bin", "c": "sub", "d": "loop.bin", "e": "."}
    sharded(folder, {ONE: shard("a")}, places)
    os.mkfifo(folder / "pipe.bin")
    (folder / "sub").mkdir()
    (folder / "loop.bin").symlink_to("loop.bin")


def _itself(folder: Path) -> None:
    sharded(folder, {ONE: shard("a")}, {"a": ONE, "b": "pytorch_model.bin.index.json"})


def _text(data: str) -> Build:
    def build(folder: Path) -> None:
        two_shards(folder)
        (folder / "pytorch_model.bin.index.json").write_text(data)

    return build


def _second(data: bytes) -> Build:
    return lambda folder: (two_shards(folder), (folder / TWO).write_bytes(data))


def _trained(name: str, data: bytes | str) -> Build:
    def build(folder: Path) -> None:
        trainer(folder)
        (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)

    return build


ODD = archive(stream(proto(), dict_((number(1), tensor(storage("1:0", numel=4), 4)))), {"1:0": bytes(16)})
SOUND, REFUSED, UNSAFE, DANGEROUS = "sound", "refused", "unsafe", "dangerous"
FOLDERS: dict[str, tuple[Build, str]] = {
    "names that climb": (_pointing("../secret.bin", "../../etc/passwd", "a/../../x"), UNSAFE),
    "absolute names": (_pointing("/etc/passwd", "C:\\x.bin", "\\\\host\\x", "file:///etc/passwd"), UNSAFE),
    "names that are no names": (_pointing("", ".", "..", "\0", "x" * 5000, "\u202e\x1b[31m"), UNSAFE),
    "links out of the folder": (_secret, UNSAFE),
    "pipes, folders and loops": (_odd_kinds, UNSAFE),
    "an index among its own parts": (_itself, UNSAFE),
    "deep JSON": (_text('{"weight_map": ' + '{"a":' * 50_000), REFUSED),
    "wide JSON": (_text('{"weight_map": {' + '"a":[],' * 1_500_000), REFUSED),
    "endless number": (
        _text('{"metadata": {"total_size": ' + "9" * 100_000 + '}, "weight_map": {}}'),
        REFUSED,
    ),
    "no files at all": (_text('{"weight_map": {}}'), SOUND),
    "a payload in a shard": (_second(PAYLOAD), DANGEROUS),
    "a payload in a broken shard": (_second(BROKEN), DANGEROUS),
    "a payload behind gzip": (_second(gzip.compress(PAYLOAD)), UNSAFE),
    "a shard of nothing": (_second(b""), UNSAFE),
    "a shard that is a web page": (_second(b"<html><title>login</title>"), UNSAFE),
    "keys of another part": (_second(ODD), SOUND),
    "a payload in the arguments": (_trained("training_args.bin", PAYLOAD), DANGEROUS),
    "a payload in the optimizer": (_trained("optimizer.pt", BROKEN), DANGEROUS),
    "a configuration of brackets": (_trained("config.json", "[" * 100_000), UNSAFE),
    "a model of overlaps": (_trained("model.safetensors", safetensors({"a": row(), "b": row()}, 8)), UNSAFE),
    "a model cut off": (_trained("model.safetensors", model(a=(4,))[:-4]), UNSAFE),
    "an endless model": (_trained("model.safetensors", safetensors("{}", nbytes=1 << 60)), UNSAFE),
}


def answer(path: Path) -> str:
    """What the program makes of a folder, in one word; a sentence has one line and nothing invisible."""
    try:
        checkpoint = open_checkpoint(str(path))
    except CheckpointError as error:
        return REFUSED if str(error).isprintable() else "more than a line"
    assert all(note.sentence.isprintable() for note in checkpoint.notes)
    assert not any("secret" in row.path for row in checkpoint.tensors)
    verdict = judge(checkpoint)
    if verdict.verdict == "dangerous":
        return DANGEROUS
    return UNSAFE if not verdict.weights_only or checkpoint.refusal else SOUND


def test_folders_do_no_harm_and_are_not_called_better_than_they_are(tmp_path: Path) -> None:
    wrong = []
    for place, (name, (build, expected)) in enumerate(FOLDERS.items()):
        folder = tmp_path / str(place) / "m"
        folder.parent.mkdir()
        build(folder)
        found = answer(folder)
        if found != expected:
            wrong.append(f"{name}: {found}, not {expected}")
    assert wrong == []
