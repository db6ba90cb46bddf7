"""Foreign text enters a snippet as a literal that means exactly that text, or not at all."""

from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st

from inspector.model.checkpoint import OddKey
from inspector.snippet.literals import is_reachable, literal, lookup, split_global
from tests.sweep import table

ANYTHING = st.text(st.characters())  # lone surrogates too


@table(
    ("text", "code"),
    [
        ("best.pth", '"best.pth"'),
        ('say "hi"', "'say \"hi\"'"),
        ("it's", '"it\'s"'),
        ("C:\\new", '"C:\\\\new"'),
        ("a\nb", '"a\\nb"'),
        ("\u202e", '"\\u202e"'),
        ("\ud800", '"\\ud800"'),
    ],
)
def test_literal(text: str, code: str) -> None:
    assert literal(text) == code


@given(ANYTHING)
def test_literal_is_plain_ascii_on_one_line_and_means_the_text(text: str) -> None:
    code = literal(text)
    assert code.isascii()
    assert code.isprintable()
    assert ast.literal_eval(code) == text


@given(st.lists(st.one_of(ANYTHING, st.integers()), max_size=4))
def test_lookup_is_nothing_but_subscripts(keys: list[str | int]) -> None:
    expression = ast.parse(lookup("checkpoint", tuple(keys)), mode="eval").body
    found = []
    while isinstance(expression, ast.Subscript):
        found.append(ast.literal_eval(expression.slice))
        expression = expression.value
    assert isinstance(expression, ast.Name)
    assert found[::-1] == keys


@table(
    ("name", "parts"),
    [
        ("collections.OrderedDict", ("collections", "OrderedDict")),
        ("torch.nn.modules.linear.Linear", ("torch.nn.modules.linear", "Linear")),
        ("__main__.Net", ("__main__", "Net")),
        ("__builtin__.slice", ("builtins", "slice")),
        ("__builtin__.xrange", ("builtins", "range")),
    ],
)
def test_global_that_can_be_written_down(name: str, parts: tuple[str, str]) -> None:
    assert split_global(name) == parts


@table(
    "name",
    [
        "Net",
        "a..b",
        ".b",
        "a.",
        "",
        "a.b\nimport os",
        "a.b;c",
        "a.class",
        "import.x",
        "a b.c",
        "a.b\\u000ac",
        "\uff4fs.system",  # Python would read this as os.system
        "m.Сеть",
    ],
)
def test_global_that_cannot(name: str) -> None:
    assert split_global(name) is None


def test_what_can_be_looked_up() -> None:
    assert is_reachable(())
    assert is_reachable(("a", 0, "b.c"))
    assert not is_reachable(("a", ".state"))
    assert not is_reachable((OddKey("(1, 2)"), "w"))
