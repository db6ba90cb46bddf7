from __future__ import annotations

import builtins
import pydoc
import subprocess
import sys

import pytest
from PySide6.QtCore import QByteArray, QTimer

from inspector.gui.quick import imports as quick_imports
from inspector.gui.quick.imports import fill_in, import_pyside, leave_sources_unread

QUICK = """
import builtins, sys
own_compile = builtins.compile
import inspector.gui
from PySide6.QtCore import QByteArray, QTimer
import gc
assert gc.get_threshold()[0] == 200_000
from inspector.gui.quick.imports import collect_as_usual
collect_as_usual()
assert gc.get_threshold()[0] == 10_000
mapping = sys.modules["shibokensupport.signature.mapping"]
assert "type_map" not in vars(mapping)
assert builtins.__import__ is not builtins.__feature_import__
assert builtins.compile is own_compile
print([name for name in ("inspect", "ast", "argparse", "logging") if name in sys.modules])
try:
    QTimer().setInterval("soon")
except TypeError as error:
    print(error)
import pydoc
print(pydoc.render_doc(QByteArray.append))
import PySide6.support.feature as feature, PySide6.support.signature.lib.pyi_generator as generator
import PySide6.support.signature.layout as layout
assert mapping.type_map and mapping.namespace is vars(mapping)
assert mapping.pyside_modules and mapping.update_mapping.__self__
assert feature.pyside_feature_dict is not None and feature.info() == []
assert callable(generator.generate_pyi)
import tempfile
assert tempfile.gettempdir()
assert not hasattr(layout, "no_such_name")
assert layout.SignatureLayout
"""


def test_qt_is_imported_without_what_is_seldom_asked_for_and_answers_as_it_does_elsewhere():
    done = subprocess.run([sys.executable, "-P", "-c", QUICK], capture_output=True, text=True, check=True)
    imported, told = done.stdout.split("\n", 1)
    assert imported == "[]"
    with pytest.raises(TypeError) as plain:
        QTimer().setInterval("soon")
    assert told == f"{plain.value}\n{pydoc.render_doc(QByteArray.append)}\n"


def test_pyside_that_was_imported_before_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(quick_imports, "_compile_later", None)
    assert not import_pyside()


def test_what_another_pyside_does_to_imports_is_left_alone(monkeypatch):
    assert not leave_sources_unread()
    monkeypatch.delattr(builtins, "__orig_import__")
    assert not leave_sources_unread()


def test_the_import_of_pyside_is_taken_back(monkeypatch):
    own = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", builtins.__feature_import__)
    assert leave_sources_unread()
    assert builtins.__import__ is own


def test_only_what_is_listed_waits(monkeypatch):
    monkeypatch.setattr(quick_imports, "_sources", {})
    source = "answer = 6 * 7"
    for file in ("shibokensupport/signature/importhandler.py", "elsewhere/signature/parser.py"):
        module = {"__name__": "known"}
        exec(quick_imports._compile_later(source, file, "exec"), module)
        assert module["answer"] == 42
    waiting = {"__name__": "shibokensupport.signature.parser"}
    exec(quick_imports._compile_later(source, "shibokensupport/signature/parser.py", "exec"), waiting)
    assert "answer" not in waiting
    waiting["set_meanwhile"] = 1
    assert waiting["__getattr__"]("answer") == 42
    assert waiting["set_meanwhile"] == 1
    with pytest.raises(AttributeError, match="no_such"):
        fill_in(waiting, "no_such")
