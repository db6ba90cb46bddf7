"""The command `verify`: is OUT what FILE should have become?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from inspector.cli.messages import DONE, NEGATIVE, say

if TYPE_CHECKING:
    from inspector.remap.compare.files import Comparison


def verify(options: argparse.Namespace) -> int:
    """Compare every tensor, value and byte of a copy with the original's; 1 means that it failed."""
    from inspector.cli.remapping import ended_by_signals, parse_map, rules_of
    from inspector.model.build import open_checkpoint
    from inspector.progress import Progress
    from inspector.remap.compare.files import compare_files

    said, target = parse_map(options)
    rules = None
    if options.map or options.target is not None:
        rules = rules_of(open_checkpoint(options.against), options, said, target)
    progress = Progress()
    with ended_by_signals(progress):
        found = compare_files(
            options.file, options.against, rules, move_all=options.move_all, progress=progress
        )
    if options.json:
        import json

        say(json.dumps(_document(options, found)) + "\n")
    else:
        say(_text(options, found))
    return DONE if found.is_same else NEGATIVE


def _document(options: argparse.Namespace, found: Comparison) -> dict[str, object]:
    return {
        "schema": 1,
        "path": options.file,
        "against": options.against,
        "same": found.is_same,
        "tensors": found.tensors,
        "compared_nbytes": found.compared_nbytes,
        "moves": [{"from": there, "to": here, "tensors": count} for there, here, count in found.moves],
        "differences": list(found.differences),
    }


def _text(options: argparse.Namespace, found: Comparison) -> str:
    from inspector.units import escape_text, format_count, format_nbytes

    name = escape_text(options.file)
    if not found.is_same:
        return "".join(f"{name}: {escape_text(line)}\n" for line in found.differences)
    parts = [format_count(found.tensors, "tensor"), f"{format_nbytes(found.compared_nbytes)} compared"]
    parts += [f"{count:,} from {escape_text(there)} to {here}" for there, here, count in found.moves]
    as_planned = "devices as planned" if options.map or options.target is not None else "the same"
    return f"{name}: {as_planned}, {', '.join(parts)}\n"
