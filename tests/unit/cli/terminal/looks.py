"""Terminals for tests, and what is seen on them."""

from __future__ import annotations

import re

from inspector.cli.terminal.paint import Look, Paint, paint_for

_ORDERS = re.compile(r"\x1b\[[0-9;]*m")


def paint(width: int = 80, **fields: object) -> Paint:
    look = Look(width=width, height=24, depth="16", ground="dark", is_unicode=True)
    return paint_for(look._replace(**fields))


PLAIN = paint(depth="none")


def seen(lines: object) -> list[str]:
    """What a terminal shows of colored lines."""
    return [_ORDERS.sub("", line) for line in lines]
