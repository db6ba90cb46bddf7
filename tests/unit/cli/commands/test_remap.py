from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
from pathlib import Path

import pytest

from inspector.containers.source import FileSource
from inspector.model.build import open_checkpoint
from inspector.records import replace
from inspector.remap import export, torch_check
from inspector.remap.files import record_path
from inspector.remap.in_place import format_undo, make_record
from inspector.remap.plan import plan_remap
from inspector.remap.relabel import Patch
from inspector.remap.torch_check import TorchCheck
from inspector.resources import demo_path
from tests.builders import pickles, zips
from tests.corpus import CORPUS

DEMO = demo_path()
READ_AGAIN = "written bytes read again, those of tensors not compared"
CHECKED = "reopened and compared: same objects, devices as planned"
EVERY_BYTE = "every copied byte compared with the original"


def devices(path: Path) -> set[str]:
    return {storage.device for storage in open_checkpoint(str(path)).storages}


def test_remap_of_what_cannot_be_read_and_to_where_nothing_can_be_written(cli, copy) -> None:
    assert cli("remap", copy.with_name("missing"), "-o", copy.with_name("out")).code == 3
    assert cli("remap", copy, "-o", copy).code == 4
    assert cli("remap", copy, "-o", copy, "--force").code == 4
    assert cli("remap", copy, "-o", copy.parent).code == 4
    assert cli("remap", copy, "-o", copy.parent / "no" / "such" / "folder").code == 4
    assert cli("remap", copy, "-o", copy.with_name("x" * 300)).code == 4
    assert list(copy.parent.iterdir()) == [copy]


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_remap_and_leaves_nothing(cli, copy, monkeypatch, number) -> None:
    verify = export._verify

    def interrupted(*arguments: object) -> None:
        os.kill(os.getpid(), number)
        verify(*arguments)

    monkeypatch.setattr(export, "_verify", interrupted)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    answer = cli("remap", copy, "-o", copy.with_name("out.pth"))
    assert (answer.code, answer.out, answer.err) == (130, "", "")
    assert list(copy.parent.iterdir()) == [copy]
    assert {number: signal.getsignal(number) for number in before} == before


@pytest.mark.usefixtures("heard")
def test_the_second_interrupt_waits_for_nothing(cli, copy, monkeypatch) -> None:
    def stuck(*arguments: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("still here")

    monkeypatch.setattr(export, "_verify", stuck)
    assert cli("remap", copy, "-o", copy.with_name("out.pth")).code == 130
    assert list(copy.parent.iterdir()) == [copy]


# ---------------------------------------------------------------------------------------------- in place


def test_the_file_itself_is_changed_and_given_back(cli, copy) -> None:
    before = copy.read_bytes()
    answer = cli("remap", copy, "--in-place", "--map", "*=cpu")
    record = copy.with_name("demo.pth.undo")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith(f"{copy}: 233 tensors relabeled in the file itself; ")
    undoable = f"can be undone as long as {record} exists"
    assert answer.out.endswith(f" written; {CHECKED}; {READ_AGAIN}; {undoable}\n")
    assert devices(copy) == {"cpu"}
    answer = cli("remap", copy, "--undo")
    assert (answer.code, answer.out) == (0, f"{copy}: restored to what it was before the change, 788 KB\n")
    assert copy.read_bytes() == before
    assert list(copy.parent.iterdir()) == [copy]


def planted(path: Path, will_be: bytes) -> None:
    """A record beside a file that says it was another before."""
    with FileSource(str(path)) as source:
        record = make_record(source, (), plan_remap(open_checkpoint(str(demo_path())), ()), 5)
    first = Patch(0, path.read_bytes())
    assert len(will_be) == len(first.data)
    whole = path.with_name("whole")
    whole.write_bytes(will_be)
    with FileSource(str(whole)) as source:
        witness = make_record(source, (), plan_remap(open_checkpoint(str(demo_path())), ()), 5).witness
    whole.unlink()
    record = replace(record, witness=witness, before=(Patch(0, will_be),), after=(first,))
    record_path(path).write_bytes(format_undo(record))


def test_what_a_planted_record_gives_back_is_refused_or_said(cli, tmp_path: Path) -> None:
    """A file that was harmless, and the evil one of its length that a record says it was."""
    note = b"cposix\nsystem\n(X\x04\0\0\0truetR"
    evil, harmless = (
        zips.checkpoint(pickles.state_dict(a=pickles.tensor(pickles.storage(), 2), b=value), {"0": bytes(8)})
        for value in (note, b"X" + (len(note) - 5).to_bytes(4, "little") + b"x" * (len(note) - 5))
    )
    path = tmp_path / "a.pth"
    path.write_bytes(harmless)
    planted(path, evil)
    answer = cli("remap", path, "--undo")
    assert (answer.code, answer.out) == (4, "")
    assert "no change that this program makes" in answer.err
    assert path.read_bytes() == harmless
    answer = cli("remap", path, "--undo", "--force")
    assert answer.code == 0
    assert answer.err == f"checkpoint-inspector: {path}: DANGEROUS: loading it can run commands\n"
    assert path.read_bytes() == evil
    planted(path, bytes(len(evil)))
    assert "it cannot be read" in cli("remap", path, "--undo", "--force").err
    shutil.copy(demo_path(), path)
    planted(path, path.read_bytes())
    assert cli("remap", path, "--undo", "--force").err == ""


# ------------------------------------------------------------------------------------- checks and receipts


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (TorchCheck(verdict="equal", torch="9.9"), "torch 9.9 loads it, and the tensors are equal"),
        (
            TorchCheck(verdict="equal", torch="9.9", missing=("cuda:0", "mps")),
            "the tensors are equal (on the CPU: this machine has no cuda:0, mps)",
        ),
    ],
)
def test_torch_s_word_is_passed_on(cli, copy, monkeypatch, check, said) -> None:
    monkeypatch.setattr(torch_check, "check_with_torch", lambda *args: check)
    answer = cli("remap", copy, "-o", copy.with_name("out"), "--verify", "torch")
    assert answer.code == 0
    assert answer.out.endswith(f"{said}\n")


def test_a_check_by_torch_that_was_not_made_is_no_success(cli, copy, monkeypatch) -> None:
    check = TorchCheck(verdict="unchecked", detail="no torch here")
    monkeypatch.setattr(torch_check, "check_with_torch", lambda *args: check)
    out = copy.with_name("out")
    answer = cli("remap", copy, "-o", out, "--verify", "torch")
    assert answer.code == 4
    assert answer.out.endswith(f"{EVERY_BYTE}\n")
    assert "error: torch did not check the copy: no torch here" in answer.err
    assert devices(out) == {"cpu"}


def test_a_copy_that_torch_refuses_does_not_appear(cli, copy, monkeypatch) -> None:
    bad = TorchCheck(verdict="failed", detail="RuntimeError: no", call="torch.load(path)")
    monkeypatch.setattr(torch_check, "check_with_torch", lambda *args: bad)
    answer = cli("remap", copy, "-o", copy.with_name("out"), "--verify", "torch")
    assert answer.code == 4
    assert "torch does not load the copy as planned: RuntimeError: no: torch.load(path)" in answer.err
    assert list(copy.parent.iterdir()) == [copy]


def test_a_receipt_is_kept(cli, copy) -> None:
    out, receipt = copy.with_name("out.pth"), copy.with_name("receipt.json")
    assert cli("remap", copy, "-o", out, "--receipt", receipt).code == 0
    assert json.loads(receipt.read_text())["plan"]["rules"] == ["*=cpu"]
    answer = cli("remap", copy, "-o", copy.with_name("out2"), "--receipt", receipt)
    assert answer.code == 4
    assert "the file already exists" in answer.err
    assert not copy.with_name("out2").exists()
    assert cli("remap", copy, "-o", out, "--receipt", receipt, "--force").code == 0


def test_times_are_kept_when_asked(cli, copy) -> None:
    os.utime(copy, ns=(10**18, 10**18))
    out = copy.with_name("out.pth")
    assert cli("remap", copy, "-o", out, "--keep-times").code == 0
    assert out.stat().st_mtime_ns == 10**18
    assert cli("remap", copy, "-o", out, "--force").code == 0
    assert out.stat().st_mtime_ns > 10**18


def test_a_copy_that_torch_still_refuses_says_so_and_offers_the_weights(cli, tmp_path: Path) -> None:
    module, out = tmp_path / "net.pt", tmp_path / "out.pt"
    shutil.copy(CORPUS / "zip" / "module_custom.pt", module)
    module.chmod(0o600)
    refused = (
        "  torch.load still refuses it by default. NEEDS YOUR TRUST: it uses __main__.Net, which your script"
    )
    copied = cli("remap", module, "-o", out).out.splitlines()
    assert copied[1] == refused
    line = shlex.split(copied[-1])
    assert line[:2] == ["checkpoint-inspector", "export"]
    assert cli(*line[1:]).code == 0
    assert json.loads(cli("check", line[4], "--target", "cpu", "--json").out)["safe"]
    assert "still refuses" not in cli("remap", line[4], "-o", out, "--force").out
    assert (
        cli("remap", module, "--in-place", "--map", "cuda:*=cpu", "--hidden-devices").out.count(refused) == 1
    )
