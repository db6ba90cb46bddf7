"""A page as lines of a terminal: which block goes where, and what comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import cast

from inspector.cli.terminal.code import lay_code
from inspector.cli.terminal.lines import lay_line
from inspector.cli.terminal.paint import Paint
from inspector.cli.terminal.tables import (
    lay_bars,
    lay_changes,
    lay_columns,
    lay_devices,
    lay_facts,
    lay_pointed,
    lay_result,
)
from inspector.cli.terminal.tree import lay_tree
from inspector.report.page.bars import Bars
from inspector.report.page.blocks import Block, Line, Page
from inspector.report.page.facts import Change, Code, Columns, DeviceRow, Fact, Pointed, Result
from inspector.report.page.rows import TreeRows


def lay_out(page: Page, paint: Paint) -> Iterator[str]:
    """Yield the lines of a page, without their ends.

    A tree that is longer than the screen comes last: what was found about it would stand a thousand lines
    below the verdict.
    """
    late = [section for section in page.sections if _is_long(section, paint.look.height)]
    for number, section in enumerate([*(one for one in page.sections if one not in late), *late]):
        if number:
            yield ""
        for kind, blocks in groupby((_shown(block, paint) for block in section), type):
            yield from _lay(kind, list(blocks), paint)


def _shown(block: Block, paint: Paint) -> Block:
    """Return a block with its texts as this terminal shows them, for that is what takes room.

    What is copied stays as it is, and a tree, which may have a million rows, looks at its own.
    """
    if type(block) not in _MEASURED or (isinstance(block, Line) and block.role == "code"):
        return block
    fields = (_texts(part, paint) for part in cast("tuple[object, ...]", block))
    return cast("Callable[..., Block]", type(block))(*fields)


def _texts(part: object, paint: Paint) -> object:
    if isinstance(part, str):
        return paint.text(part)
    return tuple(_texts(one, paint) for one in part) if type(part) is tuple else part


def _is_long(section: Iterable[Block], height: int) -> bool:
    return any(isinstance(block, TreeRows) and len(block.rows) > height for block in section)


def _lay(kind: type[Block], blocks: list[Block], paint: Paint) -> Iterator[str]:
    together = _TOGETHER.get(kind)
    if together is not None:
        yield from together(blocks, paint)
    elif kind is Result:
        for result in _joined(cast("list[Result]", blocks)):
            yield from lay_result(result, paint)
    else:
        for block in blocks:
            yield from _lay_one(block, paint)


def _joined(blocks: list[Result]) -> Iterator[Result]:
    """Yield what is said of one file in several sentences as one."""
    for (name, is_good), group in groupby(blocks, lambda block: (block.name, block.is_good)):
        yield Result(name, tuple(part for block in group for part in block.parts), is_good=is_good)


def _lay_one(block: Block, paint: Paint) -> Iterator[str]:
    lay = _LAYOUTS.get(type(block))
    if lay is None:
        return map(paint.text, block.plain())
    lines: Iterator[str] = lay(block, paint)
    return lines


_LAYOUTS: dict[type[Block], Callable[..., Iterator[str]]] = {
    Line: lay_line,
    TreeRows: lay_tree,
    Bars: lay_bars,
    Code: lay_code,
    Columns: lay_columns,
}
_TOGETHER: dict[type[Block], Callable[..., Iterator[str]]] = {
    DeviceRow: lay_devices,
    Fact: lay_facts,
    Change: lay_changes,
    Pointed: lay_pointed,
}
"""Blocks whose columns stand below each other."""
_MEASURED = {Line, Bars, Change, Columns, DeviceRow, Fact, Pointed, Result}
