"""A format is one class and its entry: nothing else compares names, and one from outside works everywhere."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.containers import formats
from inspector.containers.base import Entry
from inspector.containers.container import Container, StoredBytes, first_storage_ids
from inspector.containers.formats import FILES, FORMATS, Format
from inspector.containers.source import Source
from inspector.limits import Limits
from inspector.model.build import open_checkpoint
from inspector.pickles.machine import Machine
from inspector.progress import Progress
from tests.builders.pickles import state_dict, storage, tensor
from tests.sweep import table

PACKAGE = Path(formats.__file__).parents[1]
NAMES = frozenset({row.name for row in FORMATS} | {"torchscript", "package", "pt2"})

# Words that are spelled like a format's and are none, by module and the expression that is compared.
OTHERS = {
    "containers/zip/archive.py": {"form"},  # the kind of archive that has no data.pkl of its own
    "containers/zip/salvage.py": {"error.form"},  # the word of a lookalike
    "containers/dcp.py": {"self._packings.values()", "place.packing"},  # how its tensors are written
    "diagnose/errors/code.py": {"package", "top", "kind.lower()", "kind"},  # packages and types of Python
    "snippet/pickled.py": {"loading.form"},  # joblib's own loader, for packed pickles as well
    "remap/files.py": {"suffix"},  # of a name
    "rescue/mending.py": {"call.way"},  # the function that was called
}


def constants(node: ast.expr, known: dict[str, set[str]]) -> set[str]:
    """The texts in an expression, also those of a module's constant."""
    found = {
        one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }
    return found | (known.get(node.id, set()) if isinstance(node, ast.Name) else set())


def comparisons(source: str) -> Iterator[tuple[int, set[str]]]:
    """Where a module compares something with the name of a format: the line, and what is compared."""
    tree = ast.parse(source)
    known = {
        target.id: constants(node.value, {})
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(constants(side, known) & NAMES for side in sides):
                yield node.lineno, {ast.unparse(side) for side in sides if not isinstance(side, ast.Constant)}
        elif isinstance(node, ast.Match) and any(
            constants(value.value, {}) & NAMES
            for case in node.cases
            for value in ast.walk(case.pattern)
            if isinstance(value, ast.MatchValue)
        ):
            yield node.lineno, {ast.unparse(node.subject)}


@table(
    "source",
    [
        'if container.format == "zip": pass',
        'if "legacy" != form: pass',
        'if form in {"tar", "zip"}: pass',
        'WORDS = frozenset({"tar"})\nif form not in WORDS: pass',
        'match form:\n    case "zip": pass',
    ],
)
def test_comparison_is_seen(source: str) -> None:
    assert [names for _, names in comparisons(source)]


@pytest.mark.wide
def test_no_module_compares_names_of_formats() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        for line, compared in comparisons(path.read_text(encoding="utf-8")):
            # The shape of an export may be "safetensors", which the user chooses.
            if not compared & OTHERS.get(name, set()) and not any("shape" in one for one in compared):
                found.append(f"{name}:{line}: {', '.join(compared)}")
    assert found == []


# --- a format from outside ----------------------------------------------------------------------------------

MAGIC = b"TINY\n"
WEIGHTS = bytes(range(40))
PICKLE = state_dict(weight=tensor(storage("0", location="cuda:1", numel=10), 10))


def read_tiny(source: Source, limits: Limits, progress: Progress) -> Container:
    """Read a file of a magic word, one storage, and a pickle."""
    start = len(MAGIC) + len(WEIGHTS)
    data = source.read(start, source.nbytes - start)
    machine = Machine(data, name="the object", limits=limits, progress=progress)
    pickle = source.programs.run(machine, "the object", "object")
    return Container(
        path=source.path,
        format="tiny",
        file_nbytes=source.file_nbytes,
        root=pickle.root,
        stream=pickle,
        programs=source.programs.all(),
        storage_ids=first_storage_ids(pickle.persistent_ids, limits),
        stored={"0": StoredBytes(0, len(MAGIC), len(WEIGHTS))},
    )


class Tiny(Format):
    name = "tiny"
    what = "a tiny file"
    era = "no torch"

    def matches(self, source: Source) -> bool:
        return source.read_upto(0, len(MAGIC)) == MAGIC

    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        return read_tiny(source, limits, progress)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setitem(sys.modules, "inspector.containers.tiny", sys.modules[__name__])
    entry = Entry("tiny", "tiny:Tiny")
    monkeypatch.setattr(formats, "FILES", (entry, *FILES))
    monkeypatch.setattr(formats, "FORMATS", (entry, *FORMATS))
    path = tmp_path / "file.tiny"
    path.write_bytes(MAGIC + WEIGHTS + PICKLE)
    return path


def test_format_from_outside_is_opened(tiny: Path) -> None:
    checkpoint = open_checkpoint(str(tiny))
    assert checkpoint.format == "tiny"
    assert [(row.path, row.device, row.nbytes) for row in checkpoint.tensors] == [("weight", "cuda:1", 40)]
    assert [(row.key, row.file_offset) for row in checkpoint.storages] == [("0", len(MAGIC))]


@pytest.mark.wide
def test_format_from_outside_is_shown(tiny: Path, cli) -> None:
    shown = json.loads(cli("show", tiny, "--json").out)
    assert (shown["format"], shown["tensors"][0]["path"]) == ("tiny", "weight")
    assert "tiny, no torch" in cli("show", tiny).out
    assert cli("check", tiny, "--target", "cpu").code < 3
    assert cli("verify", tiny, "--against", tiny).code == 0


def test_format_from_outside_is_refused_where_its_devices_should_change(tiny: Path, cli) -> None:
    before = tiny.read_bytes()
    for options in (["-o", tiny.with_name("copy.pt")], ["--in-place"]):
        answer = cli("remap", tiny, *options)
        assert answer.code
        assert "this is a tiny file, whose devices this version cannot change" in answer.err
    assert tiny.read_bytes() == before
    assert sorted(path.name for path in tiny.parent.iterdir()) == ["file.tiny"]


def test_weights_of_a_format_from_outside_are_written_anew(tiny: Path, cli) -> None:
    out = tiny.with_name("weights.pt")
    assert cli("export", tiny, "-o", out, "--format", "state-dict").code == 0
    assert [(row.path, row.device) for row in open_checkpoint(str(out)).tensors] == [("weight", "cpu")]
