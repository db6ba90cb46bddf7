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
from collections.abc import Callable, Generator, Iterator
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

import pytest


class Tracing:
    """Takes the trace function of coverage out, and puts it in where lines count."""

    def __init__(self, config: pytest.Config) -> None:
        self._tracers: tuple[Any, Any] | None = None
        if config.getoption("dist", "no") != "no":
            _install((None, None))  # tests run in other processes, and this one only listens to them

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        if sys.gettrace() is None:
            return (yield)
        self._tracers = sys.gettrace(), threading.gettrace()
        _install((None, None))
        _note_imports(self._noting)
        collected = yield
        _forget_answers()
        return collected

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """What is wide comes last: what a process remembers was computed before, where lines are noted."""
        items.sort(key=lambda item: not _counts(item))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_fixture_setup(self, request: pytest.FixtureRequest) -> Generator[None, object, object]:
        with self._noting(when=_counts(request.node)):
            return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        with self._noting(when=_counts(pyfuncitem)):
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


def _counts(node: pytest.Item | pytest.Collector) -> bool:
    return node.get_closest_marker("wide") is None


def _install(tracers: tuple[Any, Any]) -> None:
    threading.settrace(tracers[1])
    sys.settrace(tracers[0])


def _forget_answers() -> None:
    """Have the package compute again what it remembers since tests were collected, for its lines count."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "inspector":
            for function in vars(module).values():
                if isinstance(function, functools._lru_cache_wrapper):
                    function.cache_clear()


def _note_imports(noting: Callable[..., contextlib.AbstractContextManager[None]]) -> None:
    """Have the lines of a module of the package noted whoever is the first to import it."""
    original = SourceFileLoader.exec_module

    def exec_module(loader: SourceFileLoader, module: ModuleType) -> None:
        with noting(when=module.__name__.partition(".")[0] == "inspector"):
            original(loader, module)

    SourceFileLoader.exec_module = exec_module
