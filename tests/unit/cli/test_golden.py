"""What each command says of a set of files, word for word; a change is reviewed as a diff.

A page in `tests/data/golden/pages/` holds command lines behind `$`, each with its answer. To add one, write
the line and run `pytest --update-golden`. A number in front is the width of the terminal.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector.resources import demo_path
from tests.builders import pickles, zips
from tests.builders.folders import trainer
from tests.builders.safetensors import row, safetensors
from tests.conftest import GOLDEN
from tests.corpus import CORPUS

DATA = CORPUS.parent
FRAMEWORKS = DATA / "frameworks"
PAGES = sorted(path.stem for path in (GOLDEN / "pages").glob("*.txt"))
FILES = {
    "demo.pth": demo_path(),
    "weights.pt": CORPUS / "zip/state_dict.pt",
    "legacy.pt": CORPUS / "devices/legacy_sparse_cuda.pt",
    "types.pt": CORPUS / "legacy/python_types.pt",
    "tied.pt": CORPUS / "legacy/tied.pt",
    "module.pt": CORPUS / "zip/module_custom.pt",
    "script.pt": CORPUS / "torchscript/conv.pt",
    "sparse.pt": CORPUS / "zip/sparse.pt",
    "train.pt": CORPUS / "zip/train.pt",
    "program.pt2": CORPUS / "export/model.pt2",
    "package.pt": CORPUS / "package/pkg.pt",
    "all.safetensors": CORPUS / "safetensors/all.safetensors",
    "small.gguf": CORPUS / "gguf/small.gguf",
    "cloud.pkl": CORPUS / "plain_pickle/cloud.pkl",
    "evil.pt": CORPUS / "hostile/os_system.pt",
    "sharded": CORPUS / "hf_sharded",
    "dcp": CORPUS / "dcp/plain",
    "lightning.ckpt": CORPUS / "frameworks/lightning.ckpt",
    "detect.pt": FRAMEWORKS / "ultralytics/detect_last.pt",
    "data.pt": FRAMEWORKS / "pyg/data.pt",
    "int8.pt": FRAMEWORKS / "torchao/int8_weight_only.pt",
    "no-torch.json": DATA / "profiles/torch-missing.json",
    "old-driver.json": DATA / "profiles/driver-too-old-470.json",
    "one-3090.json": DATA / "profiles/works-one-of-two-3090.json",
    "hidden.json": DATA / "profiles/hidden-by-empty-variable.json",
    "apple.json": DATA / "profiles/works-apple-m2.json",
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the pages name, in the working directory."""
    monkeypatch.chdir(tmp_path)
    for name, path in FILES.items():
        if path.is_dir():
            shutil.copytree(path, name, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(path, name)
    whole = demo_path().read_bytes()
    numbers = [pickles.tensor(pickles.storage(key), 2) for key in ("0", "1", "2")]
    made = {
        "damaged.pth": whole[: len(whole) // 2],
        "stub.pth": whole[:2000],
        "page.pt": b"<!DOCTYPE html><html></html>",
        "lfs.pt": b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n",
        "empty.pt": b"",
        "here.py": b'import torch\nsd = torch.load("weights.pt")["model"]\n',
        "demo.py": b'import torch\nstate = torch.load("demo.pth")\n',
        "nan.pt": zips.checkpoint(
            pickles.state_dict(fine=numbers[0], bad=numbers[1], zero=numbers[2]),
            {"0": b"\0\0\x80?\0\0\0@", "1": b"\0\0\xc0\x7f\0\0\x80\x7f", "2": bytes(8)},
        ),
        "meta.pt": zips.checkpoint(
            pickles.state_dict(
                a=pickles.tensor(pickles.storage("1", location="meta"), 2), **{"b\x1b[2J": numbers[0]}
            ),
            {"0": bytes(8)},
        ),
        "tied.safetensors": safetensors({"__metadata__": {"head": "body"}, "body": row()}, bytes(range(8))),
        "twice.pt": zips.checkpoint(
            pickles.state_dict(w=numbers[0]),
            {"0": bytes(8)},
            zips.Record(name="archive/DATA.PKL", data=pickles.state_dict(w=numbers[0])),
        ),
        "precious.pth": b"precious",
    }
    for name, data in made.items():
        Path(name).write_bytes(data)
    trainer(Path("trainer"))


def lines(document: dict[str, Any]) -> Iterator[str]:
    """A document with one row a line, so that a diff shows which row changed."""
    for name, part in document.items():
        if isinstance(part, list) and part:
            yield f'"{name}": ['
            yield from (f"  {json.dumps(row)}" for row in part)
            yield "]"
        else:
            yield f'"{name}": {json.dumps(part)}'


def answers(given: list[str], out: str) -> Iterator[str]:
    if "--json" not in given:
        yield from out.splitlines()
        return
    for line in out.splitlines():
        document = json.loads(line)
        if "open_seconds" in document:
            document["open_seconds"] = 0.5
        yield from lines(document)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", PAGES)
def test_page(cli, golden, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    page = []
    for line in (GOLDEN / "pages" / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("$ "):
            given = shlex.split(line[2:])
            monkeypatch.setenv("COLUMNS", given.pop(0) if given[0].isdecimal() else "80")
            monkeypatch.setenv("LINES", "24")
            answer = cli(*given)
            said = [*answers(given, answer.out), *(f"stderr: {text}" for text in answer.err.splitlines())]
            assert not any(text.startswith("$ ") for text in said)
            page += [line, *said, f"exit code {answer.code}", ""]
    golden(f"pages/{name}.txt", "\n".join(page).replace(f"{Path.cwd()}/", "").replace("\x1b", "ESC"))
