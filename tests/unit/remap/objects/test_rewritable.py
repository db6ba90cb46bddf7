"""Whether objects can be written again: names that would be others, and streams that readers differ about."""

from __future__ import annotations

import pickle

import pytest

from inspector.errors import DamagedError, ExportError
from inspector.pickles.machine import read_pickle
from inspector.remap.pickle_writer import names_are_present, refuse_name, refuse_odd
from tests.builders import pickles
from tests.sweep import table


@table(
    ("module", "name", "match"),
    [
        ("a\nb", "c", "a name of two lines"),
        ("a", "b\nc", "a name of two lines"),
        ("a", "\ud800", r"no text: 'a.\\ud800'"),
        ("caf\\xe9", "b", "no text"),
        ("copyreg", "extension_300", "extension code"),
        ("copyreg", "extension_-3", "extension code"),
    ],
)
def test_names_without_a_spelling_are_refused(module, name, match) -> None:
    with pytest.raises(ExportError, match=match):
        refuse_name(module, name)


@table(("module", "name"), [("copyreg", "_reconstructor"), ("mine", "extension_3"), ("caf\u00e9", "\u043a")])
def test_other_names_are_not(module, name) -> None:
    refuse_name(module, name)


def test_streams_that_readers_differ_about_are_refused() -> None:
    refuse_odd(pickles.read(b"]"))
    with pytest.raises(DamagedError, match="differently"):
        refuse_odd(pickles.read(pickles.op("EXT1", b"\x05")))


@table(
    ("data", "expected"),
    [
        (b"\x80\x04\x8c\x03dbm\x8c\x05error\x93.", True),
        (b"\x80\x03cdbm\nerror\n.", True),
        (b"\x80\x02cdbm\nerror\n.", False),
        (b"\x80\x03citertools\nizip\n.", True),
        (b"\x80\x03citertools\nchain\n.", False),
        (pickle.dumps({1}, 4), False),
    ],
)
def test_names_of_python_2_are_told_by_the_protocol(data, expected) -> None:
    assert names_are_present(read_pickle(data)) is expected
