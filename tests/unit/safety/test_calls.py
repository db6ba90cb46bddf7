from __future__ import annotations

from inspector.model.checkpoint import CallUse, Checkpoint
from inspector.records import replace
from inspector.safety.calls import call_rows, words_for
from inspector.safety.names import judge_global
from tests.sweep import table
from tests.unit.report.rows import BLANK


def made(*uses: CallUse) -> Checkpoint:
    return replace(BLANK, safety=replace(BLANK.safety, calls=uses))


def test_worst_comes_first_and_harmless_is_left_out() -> None:
    rows = call_rows(
        made(
            CallUse("torch._utils._rebuild_sparse_tensor", "x()", (), "a"),
            CallUse("_codecs.encode", "x()", (), "b"),
            CallUse("argparse.Namespace", "argparse.Namespace()", (), "c"),
            CallUse("", "<an object>()", (), "d"),
            CallUse("posix.system", 'posix.system("id")', (), None),
        )
    )
    assert [(row.path, row.verdict) for row in rows] == [
        ("d", "dangerous"),
        (None, "dangerous"),
        ("c", "unknown"),
    ]
    assert rows[1].text == 'posix.system("id")'
    assert rows[1].words.startswith("starts programs")
    assert "package argparse" in rows[2].words


def test_harmless_function_may_be_handed_a_danger() -> None:
    handed = ("torch.Tensor", "os.system")
    (row,) = call_rows(made(CallUse("torch._tensor._rebuild_from_type_v2", "x", handed, "a")))
    assert row.verdict == "dangerous"
    assert row.words.startswith("is handed os.system, which starts programs")


def test_rows_are_bounded_and_names_escaped() -> None:
    rows = call_rows(made(*(CallUse("m.\x1b" + "x" * 999, "t", (), None) for _ in range(600))))
    assert len(rows) == 500
    assert rows[0].name.startswith("m.\\u001bx")
    assert len(rows[0].name) < 120


@table(
    ("name", "words"),
    [
        ("__builtin__.eval", "runs Python code"),
        ("builtins.getattr", "gets any attribute"),
        ("subprocess.Popen", "starts programs"),
        ("pickle.loads", "loads another pickle"),
        ("socket.socket", "network"),
        ("shutil.rmtree", "deletes files"),
        ("webbrowser.open", "can run anything"),
        ("torch.device", "plain data"),
        ("mine.Net", "package mine"),
        ("", "another call"),
    ],
)
def test_words(name: str, words: str) -> None:
    assert words in words_for(name, judge_global(name))
