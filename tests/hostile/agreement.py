"""Our word on `weights_only=True` beside torch's, file by file: the table of docs/security.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from inspector.containers.formats import find_format
from inspector.containers.opening import opened
from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.safety.verdict import judge
from tests.corpus import cases
from tests.hostile.asking_torch import ask_torch
from tests.hostile.cases import CASES
from tests.hostile.constructed import constructed

QUICK_STEP = 9
NAMES = frozenset({"allow", "code"})
"""The answers that nothing but names is missing, whether or not those may be offered."""
_SLOW = frozenset({3, 4, 5, 6, 8, 11, 20, 25})
# What torch says where it refuses; with both an unknown name and an unknown opcode it ends at the first.
_TEXTS = {
    "allow": ("Unsupported global", "must be imported"),
    "code": ("Unsupported global", "must be imported"),
    "opcode": ("Unsupported operand", "Unsupported global"),
    "never": (
        "Unsupported global",
        "is blocked",
        "Unsupported operand",
        "files saved in the legacy .tar format",
    ),
}
EXPLAINED = {
    "ambiguous": "by design: programs read different things from it, whatever this torch reads",
    "refused": "torch's restricted unpickler takes what this program does not show",
    "legacy/nested.pt": "torch reads sizes before they are there, and fails by chance",
    "old/t1.4_py27_zip_opt.pt": "refused for both reasons; torch meets the other one first",
    "zip/params.pt": "the class that stands in for the allowed name would have to be a tensor's",
    "24-no-keys": "torch leaves the tensor's memory as it happens to be; here the bytes are missing",
    "25-an-import-of-60-kilobytes": "torch's own message about it takes longer than the time limit",
    "25-an-import-of-an-escape-sequence": "allowed under its shown name, which is the escaped one",
}
"""Why the two may disagree, by our answer or by the file."""
_UNWRITTEN = ("may not take the arguments", "sets no state of")
PATTERNS = (
    (r"^storages: .*part 1 is", "anything with a dtype will do for torch as the class of a storage"),
    (r"^storages: .*part 3 is", "a tag that is made while loading, which no writer does"),
    (
        r"^storages: .*part 4 is|, 1 is .*long|of one long",
        "a tensor stands for a number, which its bytes decide",
    ),
    (
        r"^storages: legacy: part 2 is|: keys (\[\]|''|\{'s-float'\})",
        "storages that the list of keys does not name",
    ),
    (
        r"^old_files: .*(view|keys \['s-float', 's-float'\])",
        "views and keys that overlap, which torch cuts to fit",
    ),
    (r"itself$", "the bytes of a storage decide how many arguments there are"),
    (r"device_tensor_from_cpu_tensor", "whether there is such a device is asked of the machine"),
    (r"^receivers: BUILD of a view on", "the type of a view's storage is not that of the tensor"),
    (r"^records: ", "spelled as no writer does, and not looked at here"),
    (r"legacy name 'torch.storage.*Untyped", "named and not used"),
    (r"behind a bad call", "torch meets an error first that no list mends; both refuse"),
    (r"_rebuild_njt", "torch allows this function of its own, and knows alone what it takes"),
    (r"ends in .r$", "allowed under its shown name, which is the escaped one"),
    (r"is torch.(Float)?Tensor$", "torch takes the class of tensors for a truth value"),
)
"""The same of the constructed files, by what `THEME: NAME` matches."""


class Row(NamedTuple):
    """One file: our answer, what torch did, and what with the names allowed that we say are all it takes."""

    folder: str
    name: str
    ours: str
    sentence: str
    theirs: str
    when_allowed: str | None

    @property
    def agrees(self) -> bool:
        """Whether torch takes the file if we say so, and our reason for a refusal is the one it gives."""
        if (self.ours == "accepts") != (self.theirs == "accepts"):
            return False
        if self.when_allowed not in {None, "accepts"}:
            return False
        return any(text in self.theirs for text in _TEXTS.get(self.ours, ("",)))

    @property
    def is_unknown(self) -> bool:
        """Whether no answer is given, which counts as not safe."""
        return self.ours == "errors" and any(words in self.sentence for words in _UNWRITTEN)

    @property
    def explanation(self) -> str | None:
        known = EXPLAINED.get(self.name) or EXPLAINED.get(self.ours)
        if known is None and self.is_unknown:
            return "arguments or a state that nobody writes: refused, since nobody can tell"
        whole = f"{self.folder}: {self.name}"
        return known or next((why for pattern, why in PATTERNS if re.search(pattern, whole)), None)


def _is_for_torch(path: Path) -> bool:
    """Whether a file is of a format that `torch.load` is for, or of none; others have their own."""
    if not path.is_file():
        return False
    try:
        with opened(str(path)) as source:
            form = find_format(source)
            return form.torch_loads or form.read is None
    except CheckpointError:
        return True


def rows(folder: Path, *, quick: bool = False) -> list[Row]:
    """Ask both about the corpus, the hostile files and the constructed ones, or what of them is quick."""
    made: list[tuple[str, str, Path]] = [
        ("corpus", case.name, case.path) for case in cases() if _is_for_torch(case.path)
    ]
    files = [("hostile", str(case), case.build()) for case in CASES if not (quick and case.group in _SLOW)]
    for title, data in constructed(QUICK_STEP if quick else 1).items():
        theme, _, name = title.partition(": ")
        files.append((theme, name, data))
    for number, (where, name, data) in enumerate(files):
        path = folder / f"{number}.pt"
        path.write_bytes(data)
        made.append((where, name, path))
    ours = [_ours(path) for _, _, path in made]
    theirs = ask_torch([(path, names) for (_, _, path), (_, _, names) in zip(made, ours, strict=True)])
    return [
        Row(where, name, kind, sentence, said[0], said[1] if len(said) > 1 else None)
        for (where, name, _), (kind, sentence, _), said in zip(made, ours, theirs, strict=True)
    ]


def _ours(path: Path) -> tuple[str, str, tuple[str, ...]]:
    try:
        answer = judge(open_checkpoint(str(path))).answer
    except CheckpointError as error:
        return "refused", str(error), ()
    return answer.kind, answer.sentence, answer.names if answer.kind in NAMES else ()


def table(found: Iterable[Row]) -> str:
    found = list(found)
    counts = Counter((row.folder, row.agrees) for row in found)
    lines = ["| files | agree | disagree |", "| --- | ---: | ---: |"]
    lines += [
        f"| {folder} | {counts[folder, True]} | {counts[folder, False]} |"
        for folder in sorted({row.folder for row in found})
    ]
    agreed = sum(row.agrees for row in found)
    lines += [f"| all | {agreed} | {len(found) - agreed} |", ""]
    others = Counter(
        (row.explanation, row.ours, "accepts" if row.theirs == "accepts" else "stops")
        for row in found
        if not row.agrees
    )
    lines += ["| disagreement | ours | torch | times |", "| --- | --- | --- | ---: |"]
    lines += [
        f"| {why} | {ours} | {theirs} | {count} |" for (why, ours, theirs), count in sorted(others.items())
    ]
    return "\n".join(lines)
