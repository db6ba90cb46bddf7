"""Each rule about the file, with a checkpoint that has the finding and one that has not."""

from __future__ import annotations

from inspector.containers.notes import Note, NoteKind
from inspector.diagnose.run import diagnose
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, GlobalUse, Safety
from inspector.model.findings import Finding, Fix
from inspector.records import replace
from inspector.safety.verdict import judge
from inspector.target.call import CUT
from inspector.target.profile import CPU_ONLY
from tests.corpus import CORPUS
from tests.sweep import table
from tests.unit.report.rows import checkpoint, optimizer, storage, tensor, value


def found(made: Checkpoint, id_: str) -> list[Finding]:
    return [finding for finding in diagnose(made, judge(made)) if finding.id == id_]


def names(*keys: str, **fields: object) -> Checkpoint:
    return checkpoint(*(tensor("model", key, **fields) for key in keys))


def test_truncated() -> None:
    made = checkpoint(
        storage("0", missing=True), storage("1"), tensor("a", storage="0"), tensor("b", storage="1")
    )
    (finding,) = found(made, "truncated")
    assert (finding.severity, finding.paths) == ("error", ("a",))
    cut = replace(made, storages=(made.storages[0], storage("1", nbytes=8, expected_nbytes=16)))
    assert found(cut, "truncated")[0].title == "Bytes of 2 tensors are missing"  # as many as are marked
    assert found(checkpoint(storage("0", nbytes=0, missing=True)), "truncated") == []
    endless = checkpoint(
        storage("0"), notes=(Note(NoteKind.NO_DIRECTORY, ("1 record",)),), refusal="RuntimeError: cut"
    )
    (finding,) = found(endless, "truncated")
    assert (finding.title, finding.paths) == ("The end of the file is missing", ())
    assert found(endless, "torch-refuses") == []


def test_invalid() -> None:
    (finding,) = found(checkpoint(tensor("a", problem="it runs past its storage")), "invalid-tensor")
    assert "a: it runs past its storage" in finding.detail
    (finding,) = found(checkpoint(tensor("a/b", problem="x")), "invalid-tensor")
    assert (finding.detail, finding.paths[0]) == ("For example a/b: x.", "a~1b")
    assert found(checkpoint(tensor("a")), "invalid-tensor") == []


@table(
    ("fields", "id_"),
    [
        ({"versions": (("version", "11"),)}, "newer-format"),
        ({"versions": (("version", "0"),)}, "torch-refuses"),
        ({"versions": (("version", "x"),)}, "torch-refuses"),
        ({"versions": (("version", "3"), ("byteorder", "middle"))}, "torch-refuses"),
        ({"refusal": "RuntimeError: file in archive is not in a subdirectory: x"}, "torch-refuses"),
        ({"notes": (Note(NoteKind.GZIP, ("gzip",)),), "format": "legacy"}, "torch-refuses"),
        ({"globals": (GlobalUse(name="torch._C.Generator", count=1),), "format": "legacy"}, "torch-refuses"),
        ({"notes": (Note(NoteKind.WRONG_CHECKSUM),)}, "bad-crc"),
        ({"versions": (("byteorder", "big"),)}, "byteorder"),
        ({"module_class": "m.net.Net"}, "whole-module"),
        ({"globals": (GlobalUse(name="m.Net", count=1),)}, "needs-allow-list"),
        ({"globals": (GlobalUse(name="os.system", count=1),)}, "dangerous-global"),
        ({"safety": Safety(opcodes=("FRAME",), protocol=4, oddities=(), unread=())}, "runs-code"),
    ],
)
def test_of_the_file_as_a_whole(fields: dict[str, object], id_: str) -> None:
    assert len(found(checkpoint(**fields), id_)) == 1
    assert found(checkpoint(versions=(("version", "3"),)), id_) == []


def test_zip_of_torch_1_4_is_refused_everywhere() -> None:
    made = checkpoint(storage("0"), notes=(Note(NoteKind.TORCH_1_4),))
    (finding,) = found(made, "torch-refuses")
    assert "Only torch 1.4 reads it" in finding.detail


def test_short_records_and_cut_legacy_files_are_left_to_their_own_rule() -> None:
    short = checkpoint(storage("0", expected_nbytes=20))
    assert found(short, "torch-refuses") == []
    assert found(checkpoint(storage("0", missing=True), format="legacy"), "torch-refuses") == []


def test_oversized() -> None:
    made = checkpoint(
        storage("0", nbytes=10_000_000, viewed_nbytes=100), tensor("part", storage="0"), tensor("b")
    )
    (finding,) = found(made, "oversized-storage")
    assert finding.paths == ("part",)
    assert finding.title.startswith("10.0 MB")
    assert found(checkpoint(storage("0", nbytes=10_000, viewed_nbytes=100)), "oversized-storage") == []
    assert (
        found(checkpoint(storage("0", nbytes=10_000_000, viewed_nbytes=0, tensors=0)), "oversized-storage")
        == []
    )


def test_shared() -> None:
    made = checkpoint(
        storage("0", tensors=2), tensor("a", storage="0"), tensor("b", storage="0"), tensor("c")
    )
    (finding,) = found(made, "shared-storage")
    assert finding.paths == ("a", "b")
    assert found(checkpoint(storage("0"), tensor("a", storage="0")), "shared-storage") == []


@table(
    ("keys", "count"),
    [
        (("module.a", "module.b.c"), 2),
        (("_orig_mod.module.a",), 1),
        (("module.a", "n_averaged"), 1),
        (("module.a", "other.b"), 0),
        (("module",), 0),
        (("a.module.b",), 0),
    ],
)
def test_prefix_of_parallel_wrappers(keys: tuple[str, ...], count: int) -> None:
    findings = found(names(*keys), "prefix-module")
    assert [finding.count for finding in findings] == [count][: bool(count)]


@table(("keys", "count"), [(("_orig_mod.a",), 1), (("net._orig_mod.a", "b"), 1), (("a", "_orig_mod"), 0)])
def test_prefix_of_compile(keys: tuple[str, ...], count: int) -> None:
    findings = found(names(*keys), "prefix-compiled")
    assert [finding.count for finding in findings] == [count][: bool(count)]


def test_prefixes_of_optimizer_state_do_not_count() -> None:
    assert found(names("module.a", role="optimizer"), "prefix-module") == []


def test_optimizer_without_names() -> None:
    made = checkpoint(optimizer("optimizer", naming="unknown", detail="Several fit."))
    (finding,) = found(made, "optimizer-mismatch")
    assert finding.detail == "Several fit."
    assert finding.severity == "note"
    for path, keys in (("o", ("o", "param_groups", 0, "fused")), ("", ("param_groups", 0, "fused"))):
        for text, at, is_fused in (("True", path, True), ("False", path, False), ("True", "other", False)):
            row = optimizer(*filter(None, [at]), naming="unknown", capturable=True, detail="Several fit.")
            (fused,) = found(checkpoint(value(*keys, text=text), row), "optimizer-mismatch")
            assert (fused.severity == "warning") == is_fused, (path, text, at)
            assert ("Segmentation fault" in fused.detail) == is_fused
    at_root = checkpoint(optimizer(naming="partial"))
    assert "the checkpoint" in found(at_root, "optimizer-mismatch")[0].title
    assert found(checkpoint(optimizer("o")), "optimizer-mismatch") == []
    assert found(checkpoint(optimizer("o", naming="unknown", with_state=0)), "optimizer-mismatch") == []


def test_needs_allow_list_names_what_to_allow() -> None:
    made = checkpoint(globals=(GlobalUse(name="m.Net", count=1),))
    detail = found(made, "needs-allow-list")[0].detail
    assert "m.Net" in detail
    assert "allow them if m is your own code" in detail
    known = checkpoint(globals=(GlobalUse(name="argparse.Namespace", count=1),))
    assert "classes that only hold data" in found(known, "needs-allow-list")[0].detail
    names = ("torch.distributed.tensor.DTensor", "argparse.Namespace")
    for count, words in (
        (1, "torch allows them by itself once you import torch.distributed.tensor before torch.load."),
        (2, "allow them, as the loading code does."),
    ):
        uses = tuple(GlobalUse(name=name, count=1) for name in names[:count])
        assert found(checkpoint(globals=uses), "needs-allow-list")[0].detail.endswith(words), names[:count]


def test_other_loader() -> None:
    made = checkpoint(format="safetensors", path="a.bin", safety=None)
    (finding,) = [one for one in diagnose(made, judge(made), CPU_ONLY) if one.id == "other-loader"]
    assert finding.severity == "note"
    assert "load it with safetensors.torch.load_file. torch.load stops with: Unpickling" in finding.detail
    named = replace(made, path="a.safetensors")
    assert [one.id for one in diagnose(named, judge(named), CPU_ONLY)] == []
    assert found(made, "other-loader") == []


def test_what_torch_says_to_a_plain_pickle_is_said_in_short() -> None:
    made = open_checkpoint(str(CORPUS / "plain_pickle" / "tensor_p2.pkl"))
    (finding,) = [one for one in diagnose(made, judge(made), CPU_ONLY) if one.id == "other-loader"]
    assert f"failed. {CUT} Unsupported global: GLOBAL torch.storage._load_from_bytes" in finding.detail


def test_tied_names() -> None:
    assert found(checkpoint(tensor("a")), "tied-names") == []
    tied = tuple((f"n{number}", "a") for number in range(6))
    (finding,) = found(replace(checkpoint(tensor("a")), tied=tied), "tied-names")
    assert (finding.title, finding.count) == ("6 tied names left out", 6)
    assert "n0 is a, n1 is a, n2 is a, n3 is a, ..." in finding.detail
    (finding,) = found(replace(checkpoint(tensor("a")), tied=tied[:1]), "tied-names")
    assert "once: n0 is a. load_file" in finding.detail


def test_cut_safetensors_are_truncated_and_others_are_refused() -> None:
    lost = checkpoint(storage("0", missing=True), format="safetensors", refusal="SafetensorError: no")
    assert len(found(lost, "truncated")) == 1
    odd = checkpoint(storage("0"), format="safetensors", refusal="SafetensorError: no")
    (finding,) = found(odd, "torch-refuses")
    assert finding.title == "safetensors.torch.load_file refuses this file"
    assert "SafetensorError: no" in finding.detail


def test_files_that_are_missing() -> None:
    note = Note(NoteKind.MISSING_PART, ("1 file is", "b.bin"))
    (finding,) = found(
        checkpoint(format="sharded", notes=(note,), refusal="FileNotFoundError: b"), "missing-part"
    )
    assert (finding.severity, finding.title) == (
        "error",
        "Files of this checkpoint are missing or cannot be read",
    )
    assert "FileNotFoundError: b. Fetch the missing files" in finding.detail


def test_index_and_files_that_disagree() -> None:
    notes = [Note(NoteKind.PART_LACKS, ("1 tensor", f"t{number}"), f"f{number}") for number in range(6)]
    assert found(checkpoint(format="sharded"), "shards-disagree") == []
    (finding,) = found(checkpoint(format="sharded", notes=tuple(notes[:2])), "shards-disagree")
    assert finding.detail.count("does not hold") == 2
    assert "more" not in finding.detail
    (finding,) = found(checkpoint(format="sharded", notes=tuple(notes)), "shards-disagree")
    assert finding.detail.count("does not hold") == 4
    assert "(and 2 more)" in finding.detail


def test_part_of_a_checkpoint() -> None:
    assert found(checkpoint(), "part-of-checkpoint") == []
    (finding,) = found(checkpoint(notes=(Note(NoteKind.PART_OF, ("run dir",)),)), "part-of-checkpoint")
    assert finding.severity == "note"
    assert "checkpoint-inspector show 'run dir' (" in finding.detail


def test_a_pickle_that_is_cut_is_truncated() -> None:
    assert found(checkpoint(notes=(Note(NoteKind.CUT_PICKLE),)), "truncated")[0].fix == Fix(recovers=True)
