"""What all tests share: no screen, no trace in the user's folders, and nothing unexpected goes unnoticed."""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.sweep import tries
from tests.tracing import Tracing

TESTS = Path(__file__).parent
GOLDEN = TESTS / "data" / "golden"

# Widgets need no screen. Set before anything can import Qt; a test of a real screen sets it for its child.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


# No example fails for the time it takes: on a busy machine each may take any.
settings.register_profile(
    "patient", deadline=None, max_examples=tries(25, 100), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files anew; review the diff"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Tracing())


# What runs other programs, or the same lines for each of many files.
WIDE = ("docs", "end2end", "formats", "fuzz", "hostile", "property", "torch")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A folder is a marker: `-m 'not end2end'` leaves out what needs a screen."""
    for module in {item.getparent(pytest.Module) for item in items}:
        folder = module.path.relative_to(TESTS).parts[0]
        if folder in {"gui", "end2end"}:
            module.add_marker(folder)
        if folder in WIDE:
            module.add_marker("wide")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Number bytes instead of showing them: an archive with the time in it differs in each process."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Settings, recent files, caches and registrations of the user are neither read nor written."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("VIRTUAL_ENV", sys.prefix)  # the Python that counts, whatever the shell has activated
        patch.delenv("CONDA_PREFIX", raising=False)
        patch.delenv("PYENV_ROOT", raising=False)
        for name in ("CONFIG_HOME", "DATA_HOME", "CACHE_HOME", "STATE_HOME", "RUNTIME_DIR"):
            folder = home / name.lower()
            folder.mkdir(mode=0o700)  # Qt refuses a runtime folder that others may enter
            patch.setenv(f"XDG_{name}", str(folder))
        yield


@pytest.fixture(autouse=True)
def _no_unexpected_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A message at WARNING or above fails the test; one that expects it looks and calls `caplog.clear()`."""
    yield
    unexpected = [record for record in caplog.get_records("call") if record.levelno >= logging.WARNING]
    if unexpected:
        pytest.fail(
            "\n".join(f"unexpected log: {record.name}: {record.getMessage()}" for record in unexpected)
        )


@pytest.fixture(autouse=True)
def _no_leaked_widget(request: pytest.FixtureRequest) -> Iterator[None]:
    """A window that outlives its test fails it: in the program it would outlive its file."""
    if "qapp" not in request.fixturenames:
        yield
        return
    before = _windows()
    yield
    # pytest-qt has closed what was given to `qtbot.addWidget`, but nothing has carried out the deletions.
    if leaked := _windows() - before:
        gc.collect()
        leaked = _windows() - before
    if leaked:
        pytest.fail(f"leaked windows: {', '.join(sorted(repr(widget) for widget in leaked))}")


def _windows() -> set[object]:
    from PySide6.QtCore import QCoreApplication, QEvent
    from PySide6.QtWidgets import QApplication

    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    return {widget for widget in QApplication.topLevelWidgets() if widget.parent() is None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one run of the command line said."""

    code: int
    out: str
    err: str


@pytest.fixture
def cli() -> Callable[..., Answer]:
    """Run `checkpoint-inspector ARGUMENT...` within this process."""

    def run(*arguments: str | os.PathLike[str]) -> Answer:
        from inspector.cli import main

        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main([os.fspath(argument) for argument in arguments])
            except SystemExit as stop:  # argparse leaves this way
                code = stop.code
        if "--json" in arguments:
            from tests.schemas import check_answer

            check_answer(list(map(os.fspath, arguments)), out.getvalue())
        return Answer(code=int(code or 0), out=out.getvalue(), err=err.getvalue())

    return run


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with tests/data/golden/NAME; `--update-golden` writes it anew."""

    def compare(name: str, text: str) -> None:
        file = GOLDEN / name
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
        assert text == file.read_text(encoding="utf-8"), (
            f"{name} differs; run pytest --update-golden and review"
        )

    return compare
