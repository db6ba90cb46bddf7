"""The layers hold: what the contracts of pyproject.toml forbid is found; the command line starts light."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (ROOT / "inspector").rglob("*.py")
}

LAYERS = "Imports go one way only"
QT = "Qt and pyqtgraph only in gui"
TORCH = "torch only in worker, and where its tensors are asked for"
NUMPY = "numpy only in gui and worker, and where arrays are asked for"
PICKLE = "Nothing that runs what is in a file"
WORKER = "The worker runs in a child process, nobody imports it"

# Folder, line to plant there in a module of its own, the import as reported, the contract that it breaks.
PLANTS = [
    ("model", "import torch", "-> torch ", TORCH),
    ("session", "from inspector.gui import app", "-> inspector.gui.app ", LAYERS),
    ("report", "def late():\n    import numpy.linalg", "-> numpy ", NUMPY),
    ("remap", "from PySide6.QtCore import QObject", "-> PySide6 ", QT),
    ("worker", "import pyqtgraph", "-> pyqtgraph ", QT),
    ("gui/pages", "def late():\n    import pyqtgraph", "-> pyqtgraph ", QT),
    ("gui/charts", "import numpy", "-> numpy ", NUMPY),
    ("containers", "import pickle", "-> pickle ", PICKLE),
    ("pickles", "import pickletools", "-> pickletools ", PICKLE),
    ("target", "import marshal", "-> marshal ", PICKLE),
    ("worker", "from inspector.session import screen", "-> inspector.session.screen ", LAYERS),
    ("session", "from inspector.worker import cast", "-> inspector.worker.cast ", WORKER),
    ("pickles", "from inspector.containers import container", "-> inspector.containers.container ", LAYERS),
    ("cli", "from inspector.gui import app", "-> inspector.gui.app ", LAYERS),
    ("gui", "from inspector.cli import commands", "-> inspector.cli.commands ", LAYERS),
    ("snippet", "from inspector.remap import plan", "-> inspector.remap.plan ", LAYERS),
    ("errors", "import inspector.units", "-> inspector.units ", LAYERS),
]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("lint-imports"), "--cache-dir", folder / "cache", "--no-logo"]
    environment = os.environ | {"COLUMNS": "250"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted")
    shutil.copytree(ROOT / "inspector", folder / "inspector", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def plant(folder: Path, where: str, line: str, number: int) -> str:
    """Plant a line; return the name of the module that it stands in."""
    package = folder / "inspector" / where
    file = package / f"planted_{number}.py" if package.is_dir() else package.with_suffix(".py")
    with file.open("a", encoding="utf-8") as module:
        module.write(f"\n{line}\n")
    name = f"inspector.{where}".replace("/", ".")
    return f"{name}.planted_{number}" if package.is_dir() else name


@pytest.mark.wide
def test_contracts_hold_and_each_planted_violation_is_found(copy: Path) -> None:
    answer = lint_imports(copy)
    assert answer.returncode == 0, answer.stdout
    for contract in (LAYERS, QT, TORCH, NUMPY, PICKLE, WORKER):
        assert f"{contract} KEPT" in answer.stdout
    planted = [plant(copy, where, line, number) for number, (where, line, _, _) in enumerate(PLANTS)]
    answer = lint_imports(copy)
    assert answer.returncode == 1
    _, *sections = re.split(
        r"^(\S.*)\n-+\n", answer.stdout.partition("Broken contracts")[2], flags=re.MULTILINE
    )
    said = dict(zip(sections[::2], sections[1::2], strict=True))
    missed = [
        (module, contract)
        for module, (_, _, target, contract) in zip(planted, PLANTS, strict=True)
        if not re.search(rf"{re.escape(module)} {re.escape(target)}", said[contract])
    ]
    assert missed == [], answer.stdout


@pytest.mark.wide
def test_a_module_without_a_layer_is_found(copy: Path) -> None:
    (copy / "inspector" / "helpers").mkdir()
    (copy / "inspector" / "helpers" / "__init__.py").touch()
    answer = lint_imports(copy)
    assert answer.returncode == 1
    assert "helpers" in answer.stdout


@pytest.mark.parametrize("module", ["inspector", "inspector.cli"])
def test_importing_loads_nothing_heavy_and_nothing_that_runs_pickles(module: str) -> None:
    heavy = {"PySide6", "shiboken6", "pyqtgraph", "numpy", "torch", "pickle", "_pickle", "pickletools"}
    code = f"import sys, {module}; print(*{heavy} & set(sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300, check=True
    )
    assert answer.stdout.split() == []


HOME = re.compile(r"[a-z_0-9.]+:[A-Z]\w*")  # a class in a module of `inspector.containers`, see `base.Entry`

# A walk over values that a page shows, and the page of each kind of them.
CIRCLES: set[tuple[str, str]] = {
    ("inspector.session.values.kinds", "inspector.session.values.showing"),
    # A file of torch within a pickle is rewritten as the whole is.
    ("inspector.remap.rewrite", "inspector.remap.relabel"),
}


def imported(source: str, known: set[str]) -> Iterator[str]:
    """The modules that a module of this source imports, be it at its top or late, but for types alone."""
    tree = ast.parse(source)
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from known & {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield from known & {f"{node.module}.{alias.name}"} or known & {str(node.module)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and HOME.fullmatch(node.value):
            yield from known & {f"inspector.containers.{node.value.partition(':')[0]}"}


def cycle(sources: dict[str, str]) -> list[str]:
    """Modules that import each other in a circle; empty if there is none."""
    imports = {name: set(imported(source, set(sources))) for name, source in sources.items()}
    for first, second in CIRCLES:
        imports.get(first, set()).discard(second)
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return error.args[1]
    return []


@pytest.mark.wide
def test_no_modules_import_each_other() -> None:
    assert cycle({name: path.read_text(encoding="utf-8") for name, path in MODULES.items()}) == []
    assert cycle({"a.b": "from a import c", "a.c": "import a.d", "a.d": "from a.b import x", "a": ""})
    assert cycle({"a.b": "import a.c", "a.c": "def late():\n    import a.b"})
    assert cycle({"inspector.containers.b": "import a", "a": "HOME = 'b:Class'"})
    types = "if TYPE_CHECKING:\n    import a.b"
    assert cycle({"a.b": "import a.c", "a.c": types}) == []


def test_benchmarks_import_what_is_there() -> None:
    """No other test imports them: a name that moved would be found by whoever measures next."""
    gone = []
    for path in sorted((ROOT / "benchmarks").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("inspector"):
                known = MODULES[node.module].read_text(encoding="utf-8") if node.module in MODULES else ""
                gone += [
                    f"{path.name}: {node.module}.{row.name}"
                    for row in node.names
                    if f"{node.module}.{row.name}" not in MODULES and not re.search(rf"\b{row.name}\b", known)
                ]
    assert gone == []
