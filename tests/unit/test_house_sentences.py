"""No sentence is a protocol: what one part finds, another compares as an enum and never by its words.

Rewording a text must not change a verdict. So whatever is compared (`==`, `in`, `startswith` and the
like) with a text that has a space in it stands in the list below, with the reason.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sweep import table

ROOT = Path(__file__).parents[2]
METHODS = frozenset({"startswith", "endswith", "removeprefix", "removesuffix", "find", "index", "count"})
MATCHING = frozenset({"match", "fullmatch", "search"})

# What others wrote, which is read here; by module and beginning of the text.
REASONED = {
    ("inspector.containers.sb3", "OpenAI Gym"): "a line of system_info.txt",
    ("inspector.containers.sb3", "GPU Enabled"): "the same",
    ("inspector.desktop.freedesktop.default_apps", "[Added Associations]"): "a section of mimeapps.list",
    ("inspector.doctor.devices", "GPU-(not found)"): "written by the probe instead of a UUID",
    ("inspector.doctor.symptoms", "found version ("): "CUDA's own message",
    ("inspector.gui.theme.theme", "Sans Serif"): "a family of fonts",
    ("inspector.gui.theme.theme", "DejaVu Sans"): "a family of fonts",
    (
        "inspector.model.obstacles",
        "it runs past",
    ): "a problem of `model.tensors.views`, by its constant",
    ("inspector.target.simulate", "RuntimeError: Trying"): "torch's own message, by its constant",
    ("inspector.safety.verdict", "<persistent id>"): "stands where a name would",
    ("inspector.target.restore", "No CUDA GPUs"): "torch's own message",
}

Constants = dict[tuple[str, str], ast.expr]


def read_package(folder: Path) -> dict[str, ast.Module]:
    gc.disable()  # it would walk over the same nodes again and again, for two seconds
    try:
        return {
            ".".join(path.relative_to(folder.parent).with_suffix("").parts): ast.parse(
                path.read_text("utf-8")
            )
            for path in sorted(folder.rglob("*.py"))
        }
    finally:
        gc.enable()


def find_constants(modules: dict[str, ast.Module]) -> Constants:
    """Every name of a module that something is assigned to, also where another module imports it."""
    found: Constants = {}
    for name, module in modules.items():
        for node in module.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            value = getattr(node, "value", None)
            for target in targets:
                several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
                pairs = zip(target.elts, value.elts, strict=False) if several else [(target, value)]
                found |= {(name, one.id): to for one, to in pairs if isinstance(one, ast.Name) and to}
    for name, module in modules.items():
        for node in ast.walk(module):
            for alias in node.names if isinstance(node, ast.ImportFrom) else ():
                value = found.get((node.module or "", alias.name))
                if value is not None:
                    found.setdefault((name, alias.asname or alias.name), value)
    return found


def texts_in(node: ast.expr, name: str, constants: Constants, depth: int = 4) -> Iterator[str]:
    """Every text that an expression may be, or hold."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Name) and depth and (name, node.id) in constants:
        yield from texts_in(constants[name, node.id], name, constants, depth - 1)
    elif isinstance(node, ast.JoinedStr):
        yield "".join(part.value for part in node.values if isinstance(part, ast.Constant))
    else:
        inside = getattr(node, "elts", []) or getattr(node, "keys", []) or []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            inside = node.args if node.func.id in {"frozenset", "tuple", "set"} else []
        for part in inside:
            if isinstance(part, ast.expr):
                yield from texts_in(part, name, constants, depth - 1)


def compared(node: ast.AST) -> list[ast.expr]:
    """What a piece of code compares."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.MatchValue):
        return [node.value]
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return []
    return node.args if node.func.attr in METHODS else node.args[:1] if node.func.attr in MATCHING else []


def find_sentences(folder: Path) -> list[tuple[str, int, str]]:
    modules = read_package(folder)
    constants = find_constants(modules)
    return [
        (name, getattr(node, "lineno", 0), text)
        for name, module in modules.items()
        if not name.startswith("inspector.diagnose.errors.")  # their job is to know torch's messages
        for node in ast.walk(module)
        for part in compared(node)
        for text in texts_in(part, name, constants)
        if " " in text.strip()
    ]


@pytest.mark.wide
def test_nothing_is_decided_by_the_words_of_a_sentence() -> None:
    found = find_sentences(ROOT / "inspector")
    known = dict.fromkeys(REASONED, 0)
    unknown = []
    for name, line, text in found:
        row = next((row for row in known if row[0] == name and text.startswith(row[1])), None)
        if row is None:
            unknown.append(f"{name}:{line}: {text}")
        else:
            known[row] += 1
    assert unknown == []
    assert [row for row, count in known.items() if not count] == []  # the list is true


@table(
    "code",
    [
        'error.what == "it breaks off"',
        'error.what.startswith("it breaks")',
        '"breaks off" in error.what',
        'BROKEN = "it breaks off"\nBROKEN not in notes',
        'BROKEN, CUT = ("it breaks off", "cut")\nnote in {BROKEN, CUT}',
        'WORDS = frozenset({"it breaks off"})\nnote in WORDS',
        'note == f"it breaks off at {place}"',
        'match note:\n    case "it breaks off":\n        pass',
        'import re\nre.search("breaks off", note)',
    ],
)
def test_comparing_a_sentence_is_seen(code: str, tmp_path: Path) -> None:
    (tmp_path / "inspector").mkdir()
    (tmp_path / "inspector" / "words.py").write_text('OTHER = "another sentence"\n')
    (tmp_path / "inspector" / "a.py").write_text(code)
    assert [name for name, _, _ in find_sentences(tmp_path / "inspector")] == ["inspector.a"]


def test_sentences_of_other_modules_are_seen(tmp_path: Path) -> None:
    (tmp_path / "inspector").mkdir()
    (tmp_path / "inspector" / "words.py").write_text('OTHER = "another sentence"\n')
    (tmp_path / "inspector" / "a.py").write_text(
        "from inspector.words import OTHER as O\nnote == O\nnote == 1"
    )
    assert [name for name, _, _ in find_sentences(tmp_path / "inspector")] == ["inspector.a"]
