"""What is dragged out of the window with rows of the tree: `.npy` files of their tensors, and their paths."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import partial
from math import prod

from inspector.records import dataclass
from inspector.report.outline.node import Tree
from inspector.session.document import Document, path_of_node
from inspector.session.values.showing import request_for, requests_of
from inspector.units import format_count, format_nbytes
from inspector.values.request import Request

MOST_FILES = 100
MOST_NBYTES = 1 << 30
PREFIX = "checkpoint-inspector-drag-"
_MOST_TEXTS = 10_000
_MOST_NAME_NBYTES = 200
_EXACT = frozenset({"bool", "uint8", "int8", "uint16", "int16"})
"""Dtypes of fewer than four bytes that an array has as they are; the others become float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """What is dragged.

    Attributes:
        folder: The temporary folder of the files, which is made with them.
        nbytes: Their bytes, at most.
        why: Why there are no files, or not one for each tensor; empty where there are.
    """

    folder: str
    files: tuple[tuple[str, Request], ...]
    nbytes: int
    text: str
    why: str = ""


def plan_taking(document: Document, nodes: Sequence[int], root: str) -> Taking:
    """Return what is dragged with some rows; nothing is written yet.

    Args:
        nodes: The ids of the rows; a group stands for the tensors below it.
    """
    text = "\n".join(filter(None, (path_of_node(document, node) for node in nodes[:_MOST_TEXTS])))
    folder = os.path.join(root, f"{PREFIX}{os.urandom(8).hex()}")  # noqa: PTH118 - a text
    nothing = partial(Taking, folder=folder, files=(), nbytes=0, text=text)
    rows = _rows(document.tree, nodes)
    if len(rows) > MOST_FILES:
        return nothing(why=f"Up to {MOST_FILES} tensors at once can be dragged out as .npy files.")
    if not rows:
        return nothing(why="There is no tensor in it to drag out as a .npy file.")
    requests = requests_of(document)
    asked = {row: request_for(requests, row) for row in rows}
    refused = [said for said in asked.values() if isinstance(said, str)]
    readable = {row: request for row, request in asked.items() if not isinstance(request, str)}
    if not readable:
        return nothing(why=f"Not dragged out as .npy: {_lowered(refused[0])}")
    nbytes = sum(map(_written_nbytes, readable.values()))
    if nbytes > MOST_NBYTES:
        most = f"up to {format_nbytes(MOST_NBYTES)} can be dragged out as .npy"
        return nothing(why=f"That is {format_nbytes(nbytes)}, and {most}: save it on the Tensor page.")
    names = _named(document.checkpoint.tensors[row].path for row in readable)
    paths = (os.path.join(folder, name) for name in names)  # noqa: PTH118 - as above
    left = f"{format_count(len(refused), 'tensor')} left out: {_lowered(refused[0])}" if refused else ""
    files = tuple(zip(paths, readable.values(), strict=True))
    return Taking(folder=folder, files=files, nbytes=nbytes, text=text, why=left)


def file_stem(path: str) -> str:
    """Return a file name for the values of a tensor: of letters, digits and what every file system takes."""
    name = re.sub(r"[^\w.\-\[\]() ]+", "_", path.replace("/", "."))
    kept = name.encode()[:_MOST_NAME_NBYTES].decode(errors="ignore")
    return kept.strip(". ") or "tensor"


def _rows(tree: Tree, nodes: Sequence[int]) -> list[int]:
    """Return the tensors of rows and below groups, each once, and no more than are too many."""
    found: dict[int, None] = {}
    todo = list(reversed(nodes))
    while todo and len(found) <= MOST_FILES:
        node = tree.nodes[todo.pop()]
        if node.kind == "tensor":
            found[node.index] = None
        elif node.tensors:
            todo += reversed(node.children)
    return list(found)


def _named(paths: Iterable[str]) -> list[str]:
    """Return a file name for each path, none twice, also where capitals do not count."""
    taken: set[str] = set()
    names = []
    for path in paths:
        stem = name = file_stem(path)
        number = 2
        while name.casefold() in taken:
            name = f"{stem}-{number}"
            number += 1
        taken.add(name.casefold())
        names.append(f"{name}.npy")
    return names


def _written_nbytes(request: Request) -> int:
    itemsize = int(request["itemsize"])
    is_exact = request["dtype"] in _EXACT and request.get("scale") is None
    return int(prod(request["shape"])) * (itemsize if is_exact else max(itemsize, 4))


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
