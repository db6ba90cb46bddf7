"""How much the tests try that try many things: a share of them, or with `SWEEP=1` (`make sweep`) all.

Each case that once found something is a test of its own and runs always. What varies is how many more are
tried at random, and how many of the genuine files are put through everything, which takes minutes.
"""

from __future__ import annotations

import functools
import inspect
import os
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import pytest

IS_SWEEP = bool(os.environ.get("SWEEP"))


def tries(usual: int, sweep: int) -> int:
    return sweep if IS_SWEEP else usual


def put_through(
    check: Callable[[Any], object], cases: Iterable[Any], name: Callable[[Any], str] = str, *, every: int = 1
) -> None:
    """Put every case through one check, then fail with all that went wrong, each under its case's name.

    With `every` above 1 it is about each second, third, ... case, others for other checks, all in a sweep;
    they are drawn by name, so that a case more changes nothing for the others. What a case cannot be
    tried with here, such as an old Python, leaves out that case alone.
    """
    failures, errors, left_out = [], [], []
    step = tries(every, 1)
    listed = list(cases)
    chosen = [case for case in listed if _draw(f"{check.__qualname__} {name(case)}", step)] or listed[:1]
    for case in chosen:
        try:
            check(case)
        except pytest.skip.Exception as error:  # an old Python is not there: the other cases go on
            left_out.append(error)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - told below
            failures.append(f"--- {name(case)}: {type(error).__name__}: {error}")
            errors.append(error)
    if failures:
        raise AssertionError("\n".join(failures)) from errors[0]  # whose lines pytest shows
    if left_out and len(left_out) == len(chosen):
        raise left_out[0]


def _draw(name: str, step: int) -> bool:
    return zlib.crc32(name.encode(errors="backslashreplace")) % step == 0


def table(
    names: str | tuple[str, ...],
    rows: Iterable[Any],
    *,
    ids: Callable[[Any], object] | Iterable[object] | None = None,
) -> Callable[[Callable[..., None]], Any]:
    """Run a test over a table as `parametrize` does, but as one test: its rows share the fixtures.

    A test of its own costs ten milliseconds, which is more than most rows take. Each row has a folder of its
    own for `tmp_path`. Of tables that stand on one another each row is tried with each row of the other.
    """
    split = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    listed = [row if len(split) > 1 else (row,) for row in rows]
    labels = [ids] * len(listed) if ids is None or callable(ids) else list(ids)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            def check(case: tuple[int, Iterable[Any]]) -> None:
                number, row = case
                values = {**fixtures, **dict(zip(split, row, strict=True))}
                if "tmp_path" in fixtures:
                    values["tmp_path"] = fixtures["tmp_path"] / str(number)
                    values["tmp_path"].mkdir()
                test(**values)

            put_through(check, enumerate(listed), lambda case: _row_name(case[1], labels[case[0]]))

        signature = inspect.signature(test)
        rest = [parameter for name, parameter in signature.parameters.items() if name not in split]
        del run.__wrapped__
        run.__signature__ = signature.replace(parameters=rest)
        return run

    return decorate


def _row_name(row: Iterable[object], label: object) -> str:
    if label is not None and not callable(label):
        return str(label)
    named = [getattr(value, "name", None) or _spelled(label(value) if label else value) for value in row]
    return ", ".join(map(str, named))[:200]


def _spelled(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # a number of more digits than Python writes
        return type(value).__name__
