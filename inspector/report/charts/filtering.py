"""The search that finds what a part of a chart stands for."""

from __future__ import annotations

from collections.abc import Iterable


def filter_for(field: str, value: str | None, others: Iterable[str] = ()) -> str:
    """Return the search for tensors with a value; empty where none can be written.

    Args:
        field: What is searched: `device`, `dtype` or `role`.
        value: The value as in the file; None where the part stands for several.
        others: The other values: where one of them begins so, the search asks for the whole.
    """
    if not value or '"' in value or not value.isprintable():
        return ""
    told_apart = " " not in value and not any(other != value and other.startswith(value) for other in others)
    return f"{field}:{value}" if told_apart else f'{field}:"{value}"'
