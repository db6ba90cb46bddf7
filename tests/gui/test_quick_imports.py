from __future__ import annotations

import builtins
import io
import pydoc
import subprocess
import sys
import zipfile

import pytest
from PySide6.QtCore import QByteArray, QTimer

from inspector.gui.quick import absent
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
print([name for name in ("textwrap", "traceback", "urllib.parse", "zipfile") if name in sys.modules])
import os, pathlib, traceback, zipfile
assert (traceback.print_exc, zipfile.ZipFile, sys.getdlopenflags() & os.RTLD_LAZY)
assert pathlib.Path("/a b").as_uri() == "file:///a%20b"
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
    put_off, imported, told = done.stdout.split("\n", 2)
    assert (put_off, imported) == ("[]", "[]")
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


@pytest.fixture
def no_embedding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SBK_EMBED", raising=False)


def zipped(method: int = zipfile.ZIP_DEFLATED, comment: bytes = b"") -> io.BytesIO:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as made:
        made.writestr("package/__init__.py", "")
        made.writestr("package/one.py", "answer = 42\n" * 100)
        made.comment = comment
    return stream


def test_a_zip_is_read_as_zipfile_reads_it(no_embedding):
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        stream = zipped(method)
        made, plain = absent.open_zip(stream), zipfile.ZipFile(stream)
        assert not isinstance(made, zipfile.ZipFile)
        names = [entry.filename for entry in made.filelist]
        assert names == plain.namelist()
        assert [made.open(name, "r").read() for name in names] == [plain.read(name) for name in names]


def test_any_other_zip_is_left_to_zipfile(no_embedding, monkeypatch):
    for stream in (zipped(comment=b"of somebody"), zipped(zipfile.ZIP_BZIP2)):
        assert isinstance(absent.open_zip(stream), zipfile.ZipFile)
    for wrong in (b"", b"no zip", zipped().getvalue()[:-22], b"PK\5\6" + b"\xff" * 18):
        with pytest.raises(zipfile.BadZipFile):
            absent.open_zip(io.BytesIO(wrong))
    monkeypatch.setenv("SBK_EMBED", "0")  # PySide unpacks it then
    assert isinstance(absent.open_zip(zipped()), zipfile.ZipFile)


def test_a_module_that_was_put_off_is_imported_when_it_is_asked(monkeypatch):
    for name in ("textwrap", "urllib.parse"):
        monkeypatch.delitem(sys.modules, name)
    with absent.put_off(("textwrap", "urllib.parse", "sys")):
        import textwrap
        from urllib.parse import quote_from_bytes

        waiting = sys.modules["textwrap"]
        assert not hasattr(waiting, "__path__")
        assert textwrap.dedent("  a") == "a"
        assert sys.modules["textwrap"] is not waiting
        assert isinstance(sys.modules["urllib.parse"], type(waiting))
        with pytest.raises(AttributeError):
            sys.modules["urllib.parse"].no_such  # noqa: B018 - asked of the real one
        assert quote_from_bytes(b"a b/c", "/") == "a%20b/c"
    assert quote_from_bytes(b"a b") == "a%20b"
    assert sys.modules["textwrap"].dedent("  a") == "a"
    assert quote_from_bytes is not sys.modules["urllib.parse"].quote_from_bytes
