"""The names of the library: all there, light, and what may not change within a major version."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import inspector
from inspector.library import names

ROOT = Path(__file__).parents[3]


def run(code: str) -> list[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, '.'); {code}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()


def test_importing_the_library_loads_nothing_but_its_names() -> None:
    code = "before = set(sys.modules); import inspector; print(*sorted(set(sys.modules) - before))"
    ours = {"inspector", "inspector.library", "inspector.library.names", "inspector.overriding"}
    assert {name for name in run(code) if name.startswith("inspector")} == ours
    heavy = "typing re inspect argparse json subprocess asyncio numpy torch PySide6 rich"
    assert set(heavy.split()).isdisjoint(run(code))


def test_packages_are_functions_whoever_imports_them_first() -> None:
    code = (
        "from inspector.remap.plan import Plan; import inspector; from inspector import snippet, diff;"
        "from inspector.diff.compare import Wish;"
        "print(*(one.__name__ for one in (inspector.remap, snippet, inspector.diff)))"
    )
    assert run(code) == ["remap", "snippet", "diff"]


def test_every_name_is_there_and_no_other() -> None:
    assert sorted([*names.HOMES, "__version__"]) == sorted([*inspector.__all__, "open"])
    for name in (*inspector.__all__, "open"):
        assert getattr(inspector, name) is not None, name
        assert name in dir(inspector)
    with pytest.raises(AttributeError, match="has no attribute 'load'"):
        _ = inspector.load  # type: ignore[attr-defined]


def test_a_star_leaves_the_open_of_python_alone() -> None:
    code = "import builtins; from inspector import *; print(open is builtins.open, diff.__name__)"
    assert run(code) == ["True", "diff"]


def public(cls: type) -> list[str]:
    """The names of a class that a user may rely on."""
    fields = getattr(cls, "__record_fields__", getattr(cls, "_fields", ()))
    said = ("what", "where", "remedy") if issubclass(cls, Exception) else ()
    return sorted({name for name in (*fields, *vars(cls), *said) if not name.startswith("_")})


def test_what_is_promised(golden) -> None:
    """Only additions may show in the diff of this file, but for a new major version."""
    lines = []
    for name in sorted(names.HOMES):
        value = getattr(inspector, name)
        if isinstance(value, type):
            base = "" if not issubclass(value, Exception) else f"({value.__base__.__name__})"
            lines += [f"class {name}{base}", *(f"    {one}" for one in public(value))]
        else:
            lines += [f"{name}(", *(f"    {one}" for one in inspect.signature(value).parameters.values())]
    golden("library.txt", "\n".join(lines) + "\n")


def test_every_name_is_documented() -> None:
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    missing = [name for name in names.HOMES if f"`{name}" not in page and f"inspector.{name}" not in page]
    assert missing == []
    for name in names.HOMES:
        assert inspect.getdoc(getattr(inspector, name)), name
