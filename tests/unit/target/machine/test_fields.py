from __future__ import annotations

import pytest

from inspector.errors import ContainerError
from inspector.target.profile_file import Fields
from tests.sweep import table


def test_what_is_there_is_given() -> None:
    fields = Fields(
        {
            "t": "a",
            "f": False,
            "c": -11,
            "n": 5,
            "v": [8, 6],
            "l": ["a", "b"],
            "o": {"x": "y"},
            "e": [{"x": "z"}],
        }
    )
    assert (fields.text("t"), fields.flag("f"), fields.count("c"), fields.nbytes("n")) == ("a", False, -11, 5)
    assert (fields.version("v"), fields.texts("l")) == ((8, 6), ("a", "b"))
    assert fields.inside("o").text("x") == "y"
    assert [part.text("x") for part in fields.each("e")] == ["z"]
    assert fields.inside("o").names == ("x",)


@pytest.mark.parametrize("value", [{}, dict.fromkeys("tfcnvloe")])
def test_what_is_missing_or_null_is_not_known(value: dict[str, object]) -> None:
    fields = Fields(value)
    assert [
        fields.text("t"),
        fields.flag("f"),
        fields.count("c"),
        fields.nbytes("n"),
        fields.version("v"),
    ] == ([None] * 5)
    assert (fields.texts("l"), fields.each("e"), fields.inside("o").names) == ((), (), ())


@table(
    ("ask", "values"),
    [
        ("text", [1, True, [], {}]),
        ("flag", ["true", 1, 0.0, []]),
        ("count", ["1", True, 1.0, 1 << 63, []]),
        ("nbytes", [-1, "1"]),
        ("version", ["8.6", [8], [8, 6, 0], [8, "6"], [8, True], [8, -6], [8, 1000], {}]),
        ("texts", ["a", ["a", 1], ["a"] * 257, {}]),
        ("inside", ["a", [], 1]),
        ("each", ["a", [1], [{}] * 257, {}]),
    ],
)
def test_what_is_of_another_kind_is_refused_with_its_place(ask: str, values: list[object]) -> None:
    for value in values:
        fields = Fields({"outer": {"name": value}}).inside("outer")
        with pytest.raises(ContainerError, match="this machine profile is damaged") as refused:
            getattr(fields, ask)("name")
        assert refused.value.where in {"outer.name", "outer.name[0]"}
        assert refused.value.remedy


@table("value", [None, [], "x", 3])
def test_a_document_that_is_no_object(value: object) -> None:
    with pytest.raises(ContainerError, match="an object is wanted: the document"):
        Fields(value)


def test_a_mapping_has_a_bounded_number_of_names() -> None:
    fields = Fields({"packages": dict.fromkeys(map(str, range(257)), "")})
    with pytest.raises(ContainerError, match="at most 256 names"):
        _ = fields.inside("packages").names


def test_texts_come_out_harmless() -> None:
    fields = Fields({"t": "a\n b\x1b[31m\u202e" + "x" * 9000, "l": ["\ud800"], "\u202e" * 90: 1})
    text = fields.text("t")
    assert text is not None
    assert text.startswith("a b\\u001b[31m\\u202exx")
    assert len(text) == 4000
    assert fields.texts("l") == ("\\ud800",)
    with pytest.raises(ContainerError) as refused:
        fields.text("\u202e" * 90)
    assert refused.value.where is not None
    assert refused.value.where.isprintable()
    assert len(refused.value.where) == 40
