"""The changes of a script's text that mend it: as small as they can be."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from inspector.diagnose.script.read import Script
from inspector.model.checkpoint import Key
from inspector.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change of the text of a script: what stands from `start` to `end` is replaced."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class When:
    """A condition that nothing tells, or that is another by default."""

    line: int
    words: str
    is_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that goes wrong.

    Attributes:
        kind: Its stable id, such as `load-fails`.
        line: The line, counted from 1.
        message: What torch or Python says; empty where nothing is said.
        advice: What to do, where that is more than the patch.
        edits: What mends it; empty where nothing in the script does, or it takes a decision.
        file: The module it stands in; empty for the script itself.
        load: The number of the load it comes of; -1 for none.
    """

    kind: str
    line: int
    message: str
    why: str
    advice: str = ""
    edits: tuple[Edit, ...] = ()
    file: str = ""
    load: int = -1
    when: tuple[When, ...] = ()

    @property
    def is_silent(self) -> bool:
        """Whether nothing is raised."""
        return not self.message


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


def imported(script: Script, lines: Sequence[str]) -> Edit:
    """Add imports behind the last plain import at the top, and other lines behind all imports there."""
    is_import = lines[0].startswith("import ")
    last = 0
    for node in script.tree.body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and not last
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if (
            is_text
            or is_future
            or isinstance(node, ast.Import if is_import else (ast.Import, ast.ImportFrom))
        ):
            last = node.end_lineno or node.lineno
        elif not isinstance(node, ast.If | ast.Try | ast.ImportFrom):
            break
    start = min(script.starts[last], len(script.text))
    return Edit(start=start, end=start, text="".join(f"{line}\n" for line in lines))


def apply_edits(text: str, edits: Sequence[Edit]) -> str | None:
    """Return a text with its changes made; None where two of them are about the same place."""
    last = len(text)
    order = {edit: place for place, edit in reversed(list(enumerate(edits)))}
    for edit in sorted(order, key=lambda one: (one.start, one.end, order[one]), reverse=True):
        if edit.end > last:
            return None
        text = text[: edit.start] + edit.text + text[edit.end :]
        last = edit.start
    return text


def share_names(script: Script, one: ast.stmt, two: ast.stmt) -> bool:
    """Return whether a statement means the same at the place of another."""
    if script.source(two).startswith("self.") and script.source(one).startswith("self."):
        return True
    functions = [
        node for node in ast.walk(script.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    inside = [
        {id(node) for node in functions if node.lineno <= each.lineno <= (node.end_lineno or 0)}
        for each in (one, two)
    ]
    return inside[0] == inside[1]
