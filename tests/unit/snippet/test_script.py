"""Lines break where formatters break them."""

from __future__ import annotations

from inspector.snippet.script import Bracketed, Script, format_code

LONG = "x" * 50


def call(*items: str | Bracketed) -> Bracketed:
    return Bracketed(head="f(", items=items, tail=")")


def listed(*items: str | Bracketed) -> Bracketed:
    return Bracketed(head="[", items=items, tail="]")


def test_short_code_stays_on_one_line() -> None:
    assert format_code(call("a", listed("b", "c"))) == ["f(a, [b, c])"]


def test_text_is_never_broken() -> None:
    assert format_code(LONG * 3) == [LONG * 3]


def test_arguments_may_share_a_line() -> None:
    assert format_code(call(LONG, "y" * 33)) == [f"f({LONG}, {'y' * 33})"]
    assert format_code(call(LONG, "y" * 32), "  ", ",") == [
        "  f(",
        f"      {LONG},",
        f"      {'y' * 32},",
        "  ),",
    ]
    assert format_code(call(LONG, "y" * 30), "", ",  # and more") == [
        "f(",
        f"    {LONG}, {'y' * 30}",
        "),  # and more",
    ]


def test_elements_may_not() -> None:
    assert format_code(listed(LONG, "y" * 40)) == ["[", f"    {LONG},", f"    {'y' * 40},", "]"]


def test_what_is_inside_breaks_too() -> None:
    assert format_code(call(listed(LONG, LONG))) == [
        "f(",
        "    [",
        f"        {LONG},",
        f"        {LONG},",
        "    ],",
        ")",
    ]


def test_script_sorts_imports_and_leaves_out_empty_paragraphs() -> None:
    script = Script()
    for statement in ("from torch.nn import Linear", "import numpy", "import gzip", "import __main__"):
        script.need(statement)
    script.paragraph()
    script.paragraph("a = 1", "b = 2")
    script.paragraph("c = 3")
    assert script.text() == (
        "import gzip\n\n"
        "import numpy\nimport torch\nfrom torch.nn import Linear\n\n"
        "import __main__\n\n"
        "a = 1\nb = 2\n\nc = 3\n"
    )


def test_names_of_one_module_are_imported_together() -> None:
    script = Script()
    for name in ("set_state", "Options", "MOST", "G"):
        script.need(f"from a.b import {name}")
    script.need("from c import d")
    assert script.text() == "import torch\nfrom a.b import MOST, G, Options, set_state\nfrom c import d\n"


def test_long_imports_are_broken() -> None:
    script = Script(uses_torch=False)
    for name in ("a" * 40, "B" * 40):
        script.need(f"from m import {name}")
    assert script.text() == f"from m import (\n    {'B' * 40},\n    {'a' * 40},\n)\n"
    script = Script(uses_torch=False)
    script.need(f"import {'a' * 90}")
    assert script.text() == f"import {'a' * 90}\n"


def test_a_device_that_several_lines_end_with_gets_a_variable() -> None:
    script = Script()
    script.paragraph('net.to("cuda:0")', 'x = saved["x"].to("cuda:0")', '    y.to("cpu")')
    script.paragraph("z = saved['.to(\"cuda:0\")']", 'load(map_location={"cuda:0": "cuda:1"})')
    assert script.text() == (
        'import torch\n\ndevice = "cuda:0"\n\nnet.to(device)\nx = saved["x"].to(device)\n    y.to("cpu")\n\n'
        'z = saved[\'.to("cuda:0")\']\nload(map_location={"cuda:0": "cuda:1"})\n'
    )
    script = Script()
    script.paragraph('net.to("cuda:0")')
    assert "device" not in script.text()
