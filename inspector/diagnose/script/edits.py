"""The changes of a script's text that mend it: as small as they can be."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from inspector.diagnose.script.problems import Edit
from inspector.diagnose.script.reading import Script
from inspector.model.checkpoint import Key

_COUNTERS = frozenset(
    {"epoch", "step", "iteration", "iter", "global_step", "start_epoch", "best_acc", "best_loss"}
)
_NO_MODEL = ("optim", "sched", "scaler", "lr_", "rng", "ema", "amp", "loss", "acc", "arg", "config", "best")


def replaced(script: Script, node: ast.expr | ast.stmt, text: str) -> Edit:
    """Put another text in the place of a node."""
    start, end = script.span(node)
    return Edit(start=start, end=end, text=text)


def appended(script: Script, node: ast.expr | ast.stmt, text: str) -> Edit:
    """Add a text right behind a node."""
    end = script.span(node)[1]
    return Edit(start=end, end=end, text=text)


def line_before(script: Script, node: ast.stmt, text: str) -> Edit:
    """Add a line above a statement, with its indentation."""
    start = script.starts[node.lineno - 1]
    at, _ = script.span(node)
    indent = script.text[start:at]
    if indent.strip():  # behind another statement, as in `a = 1; b = 2`, or behind a colon
        return Edit(start=at, end=at, text=f"{text}; ")
    return Edit(start=start, end=start, text=f"{indent}{text}\n")


def line_after(script: Script, node: ast.stmt, text: str) -> Edit:
    """Add a line below a statement, with its indentation."""
    start = script.starts[node.lineno - 1]
    at, end = script.span(node)
    indent = script.text[start:at]
    if indent.strip():
        return Edit(start=end, end=end, text=f"; {text}")
    last = node.end_lineno or node.lineno
    below = min(script.starts[last], len(script.text))
    rest = script.text[end:below].strip()
    if rest and not rest.startswith("#"):  # `a = 1; b = 2`
        return Edit(start=end, end=end, text=f"; {text}")
    if below == len(script.text) and not script.text.endswith("\n"):
        return Edit(start=below, end=below, text=f"\n{indent}{text}")
    return Edit(start=below, end=below, text=f"{indent}{text}\n")


def removed_line(script: Script, node: ast.stmt) -> Edit | None:
    """Take a statement away with its line; None where it is not alone there, or would leave a block empty."""
    first, last = script.starts[node.lineno - 1], script.starts[node.end_lineno or node.lineno]
    around = script.text[first : script.span(node)[0]] + script.text[script.span(node)[1] : last]
    if around.strip() and not around.strip().startswith("#"):
        return None
    return Edit(start=first, end=min(last, len(script.text)), text="")


def argument(script: Script, call: ast.Call, name: str, place: int, text: str) -> Edit:
    """Set an argument of a call: in the place of the one it has, or behind the last."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return replaced(script, keyword.value, text)
    if place < len(call.args) and not any(isinstance(one, ast.Starred) for one in call.args):
        return replaced(script, call.args[place], text)
    last = max(
        (*call.args, *(keyword.value for keyword in call.keywords)), key=lambda one: script.span(one)[1]
    )
    return appended(script, last, f", {name}={text}")


def key_edits(
    script: Script,
    node: ast.Subscript,
    key: object,
    statement: ast.stmt | None,
    places: Sequence[tuple[Key, ...]],
) -> list[Edit]:
    """Mend a key that the file does not have."""
    owner, text = script.source(node.value), str(key).lower()
    if str(key) in _COUNTERS and isinstance(statement, ast.Assign | ast.AugAssign):
        return [replaced(script, node, f"{owner}.get({str(key)!r}, 0)")]
    if any(word in text for word in _NO_MODEL):
        if isinstance(statement, ast.Expr) and statement.lineno == statement.end_lineno:
            return _guarded(script, statement, f"if {key!r} in {owner}:")
        return []
    if len(places) != 1 or len(places[0]) > 1:
        return []
    if not places[0]:
        return [replaced(script, node, owner)]
    return [replaced(script, node.slice, repr(places[0][0]))]


def _guarded(script: Script, statement: ast.Expr, condition: str) -> list[Edit]:
    start, end = script.span(statement)
    indent = script.text[script.starts[statement.lineno - 1] : start]
    if indent.strip():
        return []
    step = "\t" if "\t" in indent else "    "
    return [Edit(start=start, end=end, text=f"{condition}\n{indent}{step}{script.text[start:end]}")]


def apply_edits(text: str, edits: Sequence[Edit]) -> str | None:
    """Return a text with its changes made; None where two of them are about the same place."""
    last = len(text)
    for edit in sorted(set(edits), key=lambda one: (one.start, one.end), reverse=True):
        if edit.end > last:
            return None
        text = text[: edit.start] + edit.text + text[edit.end :]
        last = edit.start
    return text
