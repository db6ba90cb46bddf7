from __future__ import annotations

import copy
import enum
import hashlib
import pickle
import subprocess
import sys
import threading

import pytest

from inspector.gui.quick import enums as quick_enums
from inspector.gui.quick import waiting
from inspector.gui.quick.enums import describe

OF_QT = """
import enum, hashlib, sys
import inspector.gui
from inspector.gui.quick.enums import describe
assert enum.EnumMeta._create_ is not inspector.gui.quick.enums._create
from inspector.gui.quick.waiting import _waiting
from tests.gui.test_quick_enums import answers, qt_enums
import PySide6.QtWidgets
assert not hasattr(PySide6.QtWidgets.QListWidgetItem, "UserType")
assert len(_waiting) > 20
print(answers())
assert not _waiting
assert PySide6.QtWidgets.QListWidgetItem.UserType == 1000
print(*qt_enums(), sep="\\n")
import PySide6.QtCore, PySide6.QtWidgets
Qt = PySide6.QtCore.Qt
assert Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop == Qt.AlignmentFlag(0x21)
assert Qt.AlignmentFlag.AlignLeft in Qt.AlignmentFlag(0x21)
assert PySide6.QtCore.QModelIndex().flags() == Qt.ItemFlag.NoItemFlags
assert Qt.Key(0x41) is Qt.Key.Key_A and Qt.Key["Key_A"] is Qt.Key.Key_A
Plain = enum.Enum("Plain", "one two")
assert [(one.name, one.value) for one in Plain] == [("one", 1), ("two", 2)]
assert Plain.__module__ == "__main__"
"""
OF_PLAIN_QT = """
import PySide6.QtWidgets
from tests.gui.test_quick_enums import answers, qt_enums
print(answers())
print(*qt_enums(), sep="\\n")
"""


def answers() -> list[object]:
    """Return what Qt says in members of enumerations that nobody has asked for one, and what it takes."""
    from PySide6.QtCore import QDate, QLocale, QSettings, QUrl
    from PySide6.QtGui import QBrush, QColor, QFont, QGuiApplication, QImage, QPen, QTextCharFormat
    from PySide6.QtWidgets import QSizePolicy

    app = QGuiApplication([])
    image = QImage(2, 2, QImage.Format.Format_RGB32)
    font = QFont()
    font.setWeight(QFont.Weight(700))
    policy = QSizePolicy()
    policy.setControlType(QSizePolicy.ControlType.Slider)
    wrong = []
    for call in (lambda: font.setStyle("slanted"), lambda: QFont.Weight.Bolder, lambda: QFont.Style(77)):
        try:
            wrong.append(call())
        except (AttributeError, TypeError, ValueError) as error:
            wrong.append((type(error).__name__, str(error)))
    return [
        *(app.layoutDirection(), app.applicationState(), image.pixelFormat().colorModel()),
        *(image.format(), image.colorSpace().transferFunction(), QBrush(QColor("red")).style()),
        *(QPen().capStyle(), QPen().joinStyle(), font.weight(), font.style(), font.styleStrategy()),
        *(QLocale.c().language(), QLocale.c().numberOptions(), QColor("red").spec(), QDate().isValid()),
        *(QTextCharFormat().underlineStyle(), QSettings("a", "b").format(), policy.controlType()),
        *(QUrl("a:b").toString(QUrl.ComponentFormattingOption.FullyEncoded), list(QLocale.FormatType)),
        *(copy.copy(font.style()), pickle.loads(pickle.dumps(font.weight())), wrong),
    ]


def qt_enums() -> list[str]:
    """Describe all enumerations of a few classes of Qt."""
    from PySide6.QtCore import QEvent, QLocale, Qt
    from PySide6.QtGui import QFont, QPalette
    from PySide6.QtWidgets import QMessageBox, QSizePolicy, QStyle

    lines = []
    for owner in (Qt, QEvent, QLocale, QFont, QPalette, QMessageBox, QSizePolicy, QStyle):
        for name, made in sorted(vars(owner).items()):
            if isinstance(made, enum.EnumMeta):
                parts = repr(sorted(describe(made).items())).encode()
                lines.append(f"{owner.__name__}.{name} {hashlib.sha256(parts).hexdigest()}")
    return lines


def printed(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.wide
def test_the_enumerations_of_qt_come_to_the_same():
    plain = printed(OF_PLAIN_QT)
    assert len(plain) > 100
    assert printed(OF_QT) == plain


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enum.EnumMeta, "_create_", quick_enums._create)
    assert quick_enums.make_enums_quickly()


def test_a_python_that_makes_them_otherwise_is_left_alone(monkeypatch):
    monkeypatch.setattr(enum.EnumMeta, "_create_", quick_enums._create)
    for part in ("_waiting", "_template_of"):
        with monkeypatch.context() as context:
            context.setattr(quick_enums, part, lambda *_: 1 / 0)
            assert not quick_enums.make_enums_quickly()
    with monkeypatch.context() as context:
        context.setattr(quick_enums, "_waiting", lambda cls, name, *_: quick_enums._create(cls, name, ["A"]))
        assert not quick_enums.make_enums_quickly()
    assert enum.EnumMeta._create_ is quick_enums._create


def test_what_is_unusual_is_made_as_always(quick, monkeypatch):
    monkeypatch.setattr(quick_enums, "_waiting", lambda *_: 1 / 0)
    given = {"boundary": enum.KEEP, "module": "here"}
    names = [
        "A B",
        [("A", "text")],
        [("A", True)],
        (("A", 1),),
        [("value", 1)],
        [("mro", 1)],
        [("A", 1), ("A", 2)],
    ]
    for one in names:
        try:
            made = enum.IntEnum("Made", one, **given)
        except (TypeError, ValueError):
            continue
        assert made.__module__ == "here"
    assert enum.Enum("Made", [("A", 1)], boundary=None, module="here").A.value == 1
    assert enum.Enum("Made", [("A", 1)], type=int, **given).A == 1


def test_members_are_found_by_name_and_value_and_combined(quick):
    pairs = [("Late", 8), ("One", 1), ("Again", 1), ("Both", 9)]
    Made = enum.Flag("Made", pairs, module="here", qualname="Qt.Made", boundary=enum.KEEP)  # noqa: N806 - a class
    assert (Made.__qualname__, Made.__module__, len(Made)) == ("Qt.Made", "here", 2)
    assert Made.Again is Made.One is Made(1)
    assert Made.Late | Made.One == Made.Both
    assert [one.name for one in Made.Both] == ["Late", "One"]
    assert ~Made.Late & Made.Both == Made.One
    assert Made(64).value == 64
    with pytest.raises(AttributeError):
        Made.One = 3


def test_members_are_made_when_one_is_asked_for(quick, monkeypatch):
    monkeypatch.setattr(waiting, "_is_over", False)  # as an error of PySide's, in another test, may leave it
    asks = {
        "name": lambda made: made.One,
        "value": lambda made: made(1),
        "key": lambda made: made["One"],
        "loop": list,
        "length": len,
        "members": lambda made: made.__members__,
        "parts": vars,
        "change": lambda made: setattr(made, "extra", 1),
    }
    for kind in quick_enums._KINDS:
        for name, ask in asks.items():
            made = kind("Made", [("One", 1), ("Two", 2)], module="here", boundary=enum.KEEP)
            made.__module__, made._missing_ = "there", None  # as PySide does to each
            assert not hasattr(made, "staticMetaObject")
            assert (made in waiting._waiting, type(made)) == (True, waiting.Waiting), (kind, name)
            ask(made)
            assert (made in waiting._waiting, type(made)) == (False, enum.EnumMeta), (kind, name)
            assert (made.__module__, made.One.value, [*made.__members__]) == ("there", 1, ["One", "Two"])


def test_threads_that_ask_at_once_find_the_same_members(quick, monkeypatch):
    monkeypatch.setattr(waiting, "_is_over", False)
    asked = threading.Barrier(2)

    def members(*given: object) -> dict[str, object]:
        counted.append(1)
        return own(*given)

    own, counted = quick_enums._members, []
    monkeypatch.setattr(quick_enums, "_members", members)
    made = enum.Enum(
        "Made", [(f"n{number}", number) for number in range(2000)], module="m", boundary=enum.KEEP
    )
    found: list[object] = []

    def ask() -> None:
        asked.wait()
        found.append(made.n1999)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [made.n1999] * 2
    assert counted == [1]
