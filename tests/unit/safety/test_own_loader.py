"""What a loader runs that restricts nothing: that of distributed checkpoints."""

from __future__ import annotations

from pathlib import Path

from inspector.model.build import open_checkpoint
from inspector.safety.verdict import SafetyVerdict, judge
from tests.builders.dcp import METADATA, Saved, two_ranks
from tests.builders.pickles import call, name, number, text, tuple_
from tests.corpus import cases
from tests.sweep import table


def judged(saved: Saved, folder: Path) -> SafetyVerdict:
    return judge(open_checkpoint(str(saved.write(folder))))


def test_genuine_folders_run_nothing_but_their_own() -> None:
    for case in cases(container="dcp"):
        found = judge(open_checkpoint(str(case.path)))
        assert (found.verdict, found.weights_only, found.reasons, found.calls) == (
            "weights-only",
            True,
            (),
            (),
        )
        assert set(found.globals) <= {"allowed", "tensor"}


@table(
    ("push", "verdict", "why"),
    [
        (call("os.system", text("id")), "dangerous", "imports os.system"),
        (call("builtins.eval", text("1")), "dangerous", "imports builtins.eval"),
        (call("torch.distributed.checkpoint.metadata.exec", text("1")), "dangerous", "metadata.exec"),
        (call("mine.Config"), "runs-code", "nothing is known of: mine.Config"),
        (call("builtins.getattr", name("os.path"), text("join")), "dangerous", "getattr"),
        (
            call("builtins.getattr", name(f"{METADATA}._MEM_FORMAT_ENCODING"), text("TORCH_CHANNELS_LAST")),
            "weights-only",
            "",
        ),
        (call("builtins.getattr", name(f"{METADATA}.Metadata"), text("__init__")), "dangerous", "getattr"),
        (call("pathlib.PosixPath", text("/tmp")), "weights-only", ""),
        (call("collections.OrderedDict"), "weights-only", ""),
        (name("os.system") + tuple_(number(1)) + b"b", "dangerous", "os.system"),
    ],
)
def test_values_are_run_whatever_they_name(push: bytes, verdict: str, why: str, tmp_path: Path) -> None:
    saved = two_ranks()
    saved.value("extra", push)
    found = judged(saved, tmp_path / "a")
    assert (found.verdict, why in " ".join(found.reasons)) == (verdict, True)
    assert found.weights_only == (verdict == "weights-only")


def test_the_metadata_is_run_as_well(tmp_path: Path) -> None:
    folder = two_ranks().write(tmp_path / "a")
    whole = (folder / ".metadata").read_bytes()
    (folder / ".metadata").write_bytes(whole[:2] + call("posix.system", text("id")) + b"0" + whole[2:])
    assert judge(open_checkpoint(str(folder))).verdict == "dangerous"


def test_what_cannot_be_read_is_not_safe(tmp_path: Path) -> None:
    saved = two_ranks()
    saved.value("extra", number(3))
    saved.files["__0_0.distcp"][-60:] = bytes(60)
    found = judged(saved, tmp_path / "a")
    assert (found.verdict, found.weights_only) == ("unknown", False)
    assert "is not known: extra (" in found.reasons[0]
