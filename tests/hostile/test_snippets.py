"""Group 26: no name and no path in a file can change what the generated code does."""

from __future__ import annotations

import ast
from pathlib import Path

from inspector.model.build import open_checkpoint
from inspector.snippet.styles.table import render, styles
from inspector.target.wish import parse_target
from tests.builders import zips
from tests.builders.pickles import call, dict_, list_, number, proto, storage, stream, tensor, text
from tests.sweep import table
from tests.unit.snippet.free import comments_of, shape_of

HOSTILE = (
    "'",
    '"',
    "'''",
    '"""',
    "\\",
    "\\'",
    "a\nimport os\nos.system('id')\n",
    "a\r\nb",
    "{0}{x!r}",
    "%s%(x)s",
    "'] + __import__('os').system('id') + ['",
    '"); __import__("os").system("id"); ("',
    "# no comment",
    "\u202eb",
    "a\ud800b",
    "\u2028import os",
    "\x00",
    "\x1b[2J",
    "class",
    "\uff49mport os",
)
TARGETS = ("cpu", "cuda:1", "mps")


def _file(key: str) -> bytes:
    """A training checkpoint whose weights, optimizer and epoch stand under names made with `key`."""
    weights = dict_(
        (text("w"), tensor(storage("0", location="cuda:0"), 2)), (text("b"), tensor(storage("1"), 2))
    )
    slots = dict_((number(0), dict_((text("exp_avg"), tensor(storage("2", location="cuda:0"), 2)))))
    groups = list_(dict_((text("lr"), number(1)), (text("params"), list_(number(0)))))
    optimizer = dict_((text("state"), slots), (text("param_groups"), groups))
    return zips.checkpoint(
        stream(
            proto(),
            dict_(
                (text(f"model{key}"), weights),
                (text(f"optimizer{key}"), optimizer),
                (text(f"epoch{key}"), number(3)),
                (text(key), call("collections.OrderedDict")),
            ),
        ),
        {"0": bytes(8), "1": bytes(8), "2": bytes(8)},
    )


def _codes(folder: Path, key: str, path: str) -> list[str]:
    file = folder / "file.pt"
    file.write_bytes(_file(key))
    checkpoint = open_checkpoint(str(file))
    return [
        render(checkpoint, style=style.id, target=parse_target(target), path=path)
        for style in styles(checkpoint)
        for target in TARGETS
    ]


@table("key", HOSTILE, ids=ascii)
def test_names_and_paths_are_nothing_but_texts(key: str, tmp_path: Path) -> None:
    honest = _codes(tmp_path, "_x", "/tmp/honest.pt")
    hostile = _codes(tmp_path, key, f"/tmp/{key}.pt")
    assert len(hostile) == len(honest) >= 6
    for ours, theirs in zip(honest, hostile, strict=True):
        assert theirs.isascii()
        assert shape_of(theirs) == shape_of(ours)
        assert comments_of(theirs) == comments_of(ours)
        values = [node.value for node in ast.walk(ast.parse(theirs)) if isinstance(node, ast.Constant)]
        assert any(str(value).startswith(f"/tmp/{key}") for value in values)
