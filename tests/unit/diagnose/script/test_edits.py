from __future__ import annotations

import ast

from inspector.diagnose.script.edits import (
    Edit,
    appended,
    apply_edits,
    argument,
    key_edits,
    line_before,
    removed_line,
    replaced,
)
from inspector.diagnose.script.read import Script, parse_script


def first(script: Script, kind: type[ast.AST]) -> ast.AST:
    return next(node for node in ast.walk(script.tree) if isinstance(node, kind))


def changed(text: str, place: int, make: object, *more: object) -> str | None:
    script = parse_script(text)
    edit = make(script, script.tree.body[place], *more)
    return None if edit is None else apply_edits(text, [edit])


def test_lines_keep_their_indentation_and_company() -> None:
    assert changed("a = 1\nb = 2\n", 1, line_before, "x") == "a = 1\nx\nb = 2\n"
    assert changed("a = 1; b = 2\n", 1, line_before, "x") == "a = 1; x; b = 2\n"
    assert changed("a = 1\nb = 2\n", 0, removed_line) == "b = 2\n"
    assert changed("a = 1; b = 2\n", 0, removed_line) is None


def test_arguments() -> None:
    rows = {
        "f(p)": "f(p, map_location=d)",
        "f(p, 'x')": "f(p, d)",
        "f(p, map_location=e, k=1)": "f(p, map_location=d, k=1)",
        "f(p, k=1)": "f(p, k=1, map_location=d)",
        "f(*p)": "f(*p, map_location=d)",
        "f(\n    p,\n)": "f(\n    p, map_location=d,\n)",
    }
    for text, wanted in rows.items():
        script = parse_script(text)
        call = first(script, ast.Call)
        assert apply_edits(text, [argument(script, call, "map_location", 1, "d")]) == wanted


def test_keys() -> None:
    rows = [
        ("m.load(c['model'])\n", "model", [("state_dict",)], "m.load(c['state_dict'])\n"),
        ("m.load(c['model'])\n", "model", [()], "m.load(c)\n"),
        ("m.load(c['model'])\n", "model", [("a",), ("b",)], None),
        ("e = c['epoch']\n", "epoch", [], "e = c.get('epoch', 0)\n"),
        ("s.load(c['scheduler'])\n", "scheduler", [], "if 'scheduler' in c:\n    s.load(c['scheduler'])\n"),
        ("x = 1; s.load(c['scheduler'])\n", "scheduler", [], None),
        ("s = c['scheduler']\n", "scheduler", [], None),
    ]
    for text, key, places, wanted in rows:
        script = parse_script(text)
        edits = key_edits(script, first(script, ast.Subscript), key, script.tree.body[-1], places)
        assert (apply_edits(text, edits) if edits else None) == wanted, text
    tabbed = parse_script("if a:\n\ts.load(c['lr_sched'])\n")
    edits = key_edits(tabbed, first(tabbed, ast.Subscript), "lr_sched", tabbed.tree.body[0].body[0], [])
    assert apply_edits(tabbed.text, edits) == "if a:\n\tif 'lr_sched' in c:\n\t\ts.load(c['lr_sched'])\n"


def test_changes_of_one_place_exclude_each_other() -> None:
    script = parse_script("abc")
    node = script.tree.body[0]
    assert apply_edits("abc", [replaced(script, node, "x"), appended(script, node, ".y")]) == "x.y"
    assert apply_edits("abc", [Edit(start=0, end=2, text="x"), Edit(start=1, end=3, text="y")]) is None
