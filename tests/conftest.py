"""What all tests share: no screen, no trace in the user's folders, and nothing unexpected goes unnoticed."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.logging import caplog_records_key
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.frozen import Frozen
from tests.hanging import Hanging
from tests.sweep import IS_SWEEP, tries
from tests.tracing import Tracing, unnoted

TESTS = Path(__file__).parent
GOLDEN = TESTS / "data" / "golden"

# Widgets need no screen. Set before anything can import Qt; a test of a real screen sets it for its child.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


# No example fails for the time it takes: on a busy machine each may take any. Examples are the same in each
# run, so that a change is red by what it changes; a sweep tries others each time.
settings.register_profile(
    "patient",
    deadline=None,
    max_examples=tries(25, 100),
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not IS_SWEEP,
    database=None,
    print_blob=True,
)
settings.load_profile("patient")
if not IS_SWEEP:
    # Else it reads the source of each module that is imported so far for figures to try: two seconds in each
    # process, and other examples in another order of tests, or after any change of the program.
    providers._get_local_constants = lambda: providers._local_constants


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files anew; review the diff"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Tracing(config))
    config.pluginmanager.register(Hanging())
    config.pluginmanager.register(Frozen())


# Modules that import torch, or what itself imports it; tests that do so in their body are marked one by one.
_IMPORTS_TORCH = re.compile(
    r"^(import torch|from torch\b|torch = |from tests(\.torch|\.one_byte| import one_byte)\b)", re.MULTILINE
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where torch is not there or not wanted, what imports it is no test: `make test-light`."""
    if importlib.util.find_spec("torch") is not None and config.getoption("markexpr") != "not torch":
        return None
    if collection_path.is_dir():
        return collection_path == TESTS / "torch" or None
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    text = collection_path.read_text(encoding="utf-8") if is_test else ""
    return _IMPORTS_TORCH.search(text) is not None or None


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


_LOOKS = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "COLORTERM", "COLUMNS", "LINES", "PAGER", "LESS")
"""What a user's shell says of terminals."""


@pytest.fixture(scope="session", autouse=True)
def _signals_end_programs() -> None:
    """What `nohup` and the like ignore, all children would ignore as well."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Settings, recent files, caches and registrations of the user are neither read nor written."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("VIRTUAL_ENV", sys.prefix)  # the Python that counts, whatever the shell has activated
        patch.setenv("TERM", "xterm-256color")  # also where the tests run on a terminal that can do nothing
        for name in ("CONDA_PREFIX", "PYENV_ROOT", *_LOOKS):
            patch.delenv(name, raising=False)
        for name in ("CONFIG_HOME", "DATA_HOME", "CACHE_HOME", "STATE_HOME", "RUNTIME_DIR"):
            folder = home / name.lower()
            folder.mkdir(mode=0o700)  # Qt refuses a runtime folder that others may enter
            patch.setenv(f"XDG_{name}", str(folder))
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A message at WARNING or above fails the test; one that expects it looks and calls `caplog.clear()`."""
    result = yield
    records = item.stash[caplog_records_key]["call"]  # those of `caplog`, which as a fixture costs more
    unexpected = [record for record in records if record.levelno >= logging.WARNING]
    if unexpected:
        pytest.fail(
            "\n".join(f"unexpected log: {record.name}: {record.getMessage()}" for record in unexpected)
        )
    return result


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Spare the process that gathers what is said of each test the keywords: no one asks for them."""
    report = yield
    report.keywords = {}
    return report


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
        if {"--json", "-j"} & {*arguments}:
            from tests.schemas import check_answer

            unnoted(check_answer)(list(map(os.fspath, arguments)), out.getvalue())
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
