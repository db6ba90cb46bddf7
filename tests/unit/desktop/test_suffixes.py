"""The suffixes of all desktops are the same."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter

from inspector.desktop.freedesktop.entry import read_own_types
from inspector.desktop.suffixes import KINDS
from inspector.resources import resource_path

SPACE = "{http://www.freedesktop.org/standards/shared-mime-info}"
LONG = {".pth.tar", ".safetensors.index.json", ".bin.index.json"}
"""Suffixes in two parts, which only freedesktop knows."""
COMPANIONS = (
    "text/",
    "application/octet-stream",
    "application/zip",
    "application/x-tar",
    "application/x-hdf",
)


def test_no_desktop_knows_a_suffix_that_another_does_not():
    root = ET.parse(resource_path("desktop/checkpoint-inspector.xml")).getroot()
    own_types = read_own_types(
        resource_path("desktop/checkpoint-inspector.desktop").read_text(encoding="utf-8")
    )
    own, others = set(), set()
    for kind in root:
        name = kind.get("type")
        if not name.startswith(COMPANIONS):
            suffixes = {glob.get("pattern").removeprefix("*") for glob in kind.iter(f"{SPACE}glob")}
            (own if name in own_types else others).update(suffixes)
    assert own - LONG == {suffix for kind in KINDS if kind.is_own for suffix in kind.suffixes}
    assert others - LONG == {suffix for kind in KINDS if not kind.is_own for suffix in kind.suffixes}
    counts = Counter(suffix for kind in KINDS for suffix in kind.suffixes)
    assert max(counts.values()) == 1
