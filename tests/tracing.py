"""Notes lines for coverage only while a test, its fixtures or a module of the package runs.

Each step of Python takes several times as long while lines are noted, whether it is one of the package or
not: the collection took twice as long, and so did an empty test. And a test that is marked `wide` runs the
same lines again and again. So coverage is that of the tests of single things, where a line without one shows.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Collection, Generator, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TESTS = Path(__file__).parent
# Most tests open a file, and many write a copy. What runs behind these functions counts in the tests of the
# named folders only: the lines of reading are noted by the tests of reading, not by each that needs a file.
DOORS = {
    "inspector.containers.opening": ({"read_container"}, {"containers", "pickles", "model"}),
    "inspector.model.build": ({"build_checkpoint", "open_checkpoint"}, {"containers", "pickles", "model"}),
    "inspector.remap.verify": ({"compare_files"}, {"remap"}),
    "inspector.remap.export_form": ({"export_form"}, {"remap"}),
    "inspector.remap.recover": ({"recover"}, {"remap"}),
    "inspector.remap.export": ({"export_copy"}, {"remap"}),
    "inspector.remap.in_place": ({"patch_in_place", "undo_patch"}, {"remap"}),
}
_caches: list[functools._lru_cache_wrapper[Any]] = []


class Tracing:
    """Takes the trace function of coverage out, and puts it in where lines count."""

    def __init__(self, config: pytest.Config) -> None:
        self._tracers: tuple[Any, Any] | None = None
        self._doors = Doors()
        if config.getoption("dist", "no") != "no":
            _install((None, None))  # tests run in other processes, and this one only listens to them

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        if sys.gettrace() is None:
            return (yield)
        self._tracers = sys.gettrace(), threading.gettrace()
        _install((None, None))
        for module in filter(_is_ours, list(sys.modules.values())):
            self._doors.hang(module)  # a conftest has imported it
        _note_imports(self._noting, self._doors)
        collected = yield
        _forget_answers()
        return collected

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """What is wide comes last: what a process remembers was computed before, where lines are noted."""
        items.sort(key=lambda item: not _counts(item))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_fixture_setup(self, request: pytest.FixtureRequest) -> Generator[None, object, object]:
        with self._noting(when=_counts(request.node)), self._doors.shut_for(request.node):
            return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        with self._noting(when=_counts(pyfuncitem)), self._doors.shut_for(pyfuncitem):
            return (yield)

    @contextlib.contextmanager
    def _noting(self, *, when: bool) -> Iterator[None]:
        if self._tracers is None or not when:
            yield
            return
        before = sys.gettrace(), threading.gettrace()
        _install(self._tracers)
        try:
            yield
        finally:
            _install(before)


class Doors:
    """Functions behind which no lines are noted for the tests of other folders."""

    def __init__(self) -> None:
        self._folder = ""

    @contextlib.contextmanager
    def shut_for(self, node: pytest.Item | pytest.Collector) -> Iterator[None]:
        """Shut all that does not count in the test or fixture that runs."""
        before = self._folder
        self._folder = _folder_of(node)
        try:
            yield
        finally:
            self._folder = before

    def hang(self, module: ModuleType) -> None:
        """Put a door before each function of a module that has one, and note what it remembers."""
        _caches.extend(_caches_of(module))
        names, folders = DOORS.get(module.__name__, ((), ()))
        for name in names:
            function = getattr(module, name)
            door = self._door(function, folders)
            for other in [module, *filter(_is_ours, list(sys.modules.values()))]:
                for known in [known for known, value in vars(other).items() if value is function]:
                    setattr(other, known, door)

    def _door(self, function: Callable[..., Any], folders: Collection[str]) -> Callable[..., Any]:
        shut = unnoted(function)

        @functools.wraps(function)
        def door(*arguments: Any, **named: Any) -> Any:
            is_open = not self._folder or self._folder in folders
            return (function if is_open else shut)(*arguments, **named)

        return door


def unnoted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that does the same, and no lines are noted meanwhile."""

    @functools.wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        tracer = sys.gettrace()
        if type(tracer).__name__ != "CTracer":  # none, or one that counts steps
            return function(*arguments, **named)
        empty = [one for one in _caches if not one.cache_info().currsize]
        sys.settrace(None)
        try:
            return function(*arguments, **named)
        finally:
            for one in empty:
                one.cache_clear()  # what it computed is computed again where lines are noted
            sys.settrace(tracer)
            _call()

    return run


def _call() -> None:
    """Let the trace function that was put in see a call, and with it the end of the frame that called."""


def _folder_of(node: pytest.Item | pytest.Collector) -> str:
    """Return the folder of a test below tests/unit, or below tests; none where a test is of no package."""
    folder = node.path.parent
    folders = folder.relative_to(TESTS).parts if folder.is_relative_to(TESTS) else ()
    return next((name for name in folders if name != "unit"), "")


def _counts(node: pytest.Item | pytest.Collector) -> bool:
    return node.get_closest_marker("wide") is None


def _install(tracers: tuple[Any, Any]) -> None:
    threading.settrace(tracers[1])
    sys.settrace(tracers[0])


def _forget_answers() -> None:
    for module in filter(_is_ours, list(sys.modules.values())):
        for function in _caches_of(module):
            function.cache_clear()


def _is_ours(module: ModuleType) -> bool:
    return getattr(module, "__name__", "").partition(".")[0] == "inspector"


def _caches_of(module: ModuleType) -> list[functools._lru_cache_wrapper[Any]]:
    return [one for one in vars(module).values() if isinstance(one, functools._lru_cache_wrapper)]


def _note_imports(noting: Callable[..., contextlib.AbstractContextManager[None]], doors: Doors) -> None:
    """Have the lines of a module of the package noted whoever is the first to import it."""
    original = SourceFileLoader.exec_module

    def exec_module(loader: SourceFileLoader, module: ModuleType) -> None:
        with noting(when=module.__name__.partition(".")[0] == "inspector"):
            original(loader, module)
        if _is_ours(module):
            doors.hang(module)

    SourceFileLoader.exec_module = exec_module
