from __future__ import annotations

from inspector.library.notebook import MOST_BESIDE, MOST_ROWS, text_of, tree_lines
from inspector.report.colors import device_colors
from inspector.report.outline.node import Tree
from inspector.report.tree import build_tree
from tests.unit.library.notebook_parsing import Page
from tests.unit.report.rows import checkpoint, tensor, value


def tree_of(*given) -> Tree:
    found = checkpoint(*given)
    return build_tree(found, device_colors(row.device for row in found.tensors))


def page(*given) -> Page:
    return Page("".join(tree_lines(tree_of(*given))))


def rows(found: Page) -> int:
    return sum(value.startswith("row") for name, value in found.attributes if name == "class")


def test_a_row_says_what_it_is() -> None:
    found = page(tensor("model", "a.weight", device="cuda:1", shape=(2, 3)), value("epoch", text="7"))
    assert found.wrong == []
    assert found.texts == [
        *("model/a", "cuda:1", "6 params", "1 tensor", "16 B"),
        *("weight", "cuda:1", "2 \u00d7 3", "float32", "16 B"),
        *("epoch", "7", "int"),
    ]
    assert ("title", "model/a.") in found.attributes
    assert ("class", "dot d0") in found.attributes
    assert found.tags.count("details") == 1
    assert ("open", "") in found.attributes


def test_a_group_without_tensors_and_one_on_several_devices() -> None:
    found = page(
        value("scheduler", "a"),
        value("scheduler", "b"),
        *(tensor("m", str(number), device=f"cuda:{number % 6}", nbytes=number) for number in range(1, 9)),
        tensor("m", "x"),
    )
    assert "2 entries" in found.texts
    dots = [text for name, text in found.attributes if name == "class" and text.startswith("dot")]
    assert dots[:4] == ["dot d0", "dot d1", "dot d2", "dot d3"]


def test_a_long_list_is_cut_and_what_is_beside_it_is_not() -> None:
    found = page(*(tensor("a", str(number)) for number in range(MOST_BESIDE + 7)), value("epoch"))
    assert found.wrong == []
    assert "7 more" in found.texts
    assert "epoch" in found.texts
    assert ("open", "") not in found.attributes


def test_as_many_rows_as_may_be_nearest_to_the_root_first() -> None:
    many = page(*(tensor(f"g{number % 50}", str(number)) for number in range(5000)))
    assert many.wrong == []
    assert all(f"g{number}" in many.texts for number in range(50))
    assert rows(many) <= MOST_ROWS + 50  # the lines that count what is left out
    assert "4,800 rows further below: text() of the checkpoint lists all" in many.texts
    assert "40 more" in many.texts


def test_one_group_alone_is_unfolded_however_long() -> None:
    alone = page(*(tensor("a", str(number), "w") for number in range(30)))
    assert alone.attributes.count(("open", "")) == 1


def test_few_rows_are_all_unfolded_and_deep_ones_are_not_pushed_out_of_sight() -> None:
    keys = [f"k{number}" for number in range(30)]
    given = [value(*keys[:depth], "v") for depth in range(30)]
    found = page(*given, tensor(*keys))
    assert found.wrong == []
    assert found.deepest == 29
    assert found.attributes.count(("class", "in")) == 12


def test_texts_of_a_file_are_text() -> None:
    assert text_of("<b>\u202e'\"&\x1b") == "&lt;b&gt;\\u202e&#x27;&quot;&amp;\\u001b"
    assert len(text_of("x" * 1000)) == 80
    hostile = '"><script>alert(1)</script><img src=x onerror=alert(1)><!-- </details></div></style>'
    found = page(
        tensor(hostile, "w", device=hostile, dtype=hostile),
        tensor("z", "w"),
        value(hostile[:20], text=hostile, type=hostile),
    )
    assert found.wrong == []
    assert any("<script>" in text for text in found.texts)
