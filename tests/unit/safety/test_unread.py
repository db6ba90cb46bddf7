from __future__ import annotations

from pathlib import Path

from inspector.containers.opening import read_container
from inspector.errors import CheckpointError, ContainerError
from inspector.safety.unread import Unread, advice, judge_unread
from tests.builders.pickles import NONE, call, name, op, proto, stream, text
from tests.builders.zips import Record, build_zip
from tests.corpus import CORPUS
from tests.sweep import table

EVIL = call("posix.system", text("id"))


def refused(path: Path) -> CheckpointError:
    """The error of a file, or one that has what an error would have of it."""
    try:
        container = read_container(str(path))
    except CheckpointError as error:
        return error
    error = ContainerError("refused")
    error.programs = container.programs
    return error


def judged(folder: Path, data: bytes) -> Unread | None:
    path = folder / "file.pkl"
    path.write_bytes(data)
    return judge_unread(refused(path))


def test_what_was_not_seen_is_not_judged(tmp_path: Path) -> None:
    assert judge_unread(ContainerError("no such file")) is None
    assert judged(tmp_path, b"<html></html>") is None


@table("rest", [b".", b"", b"\xff", b"c", NONE + b"0."])
def test_payload_is_dangerous_whatever_comes_behind_it(tmp_path: Path, rest: bytes) -> None:
    seen = judged(tmp_path, proto() + EVIL + rest)
    assert seen.verdict == "dangerous"
    assert seen.sentence == (
        'Loading it can run commands: as far as it could be read, it calls posix.system("id").'
    )
    assert advice(ContainerError("x", remedy="fetch it again"), seen) == "do not load it with any program"


def test_worst_comes_first(tmp_path: Path) -> None:
    calls = [call(f"a.B{number}") + op("POP") for number in range(6)]
    seen = judged(tmp_path, stream(proto(), name("torch.device") + op("POP"), *calls, EVIL))
    assert [(title, verdict) for title, _, verdict in seen.names][:2] == [
        ("posix.system", "dangerous"),
        ("a.B0", "unknown"),
    ]
    assert seen.names[-1][0] == "torch.device"
    assert 'calls posix.system("id"), a.B0(), a.B1(), a.B2() and more.' in seen.sentence


def test_unknown_calls_run_code(tmp_path: Path) -> None:
    seen = judged(tmp_path, stream(proto(), call("sklearn.svm.SVC")))
    assert seen.sentence == "Loading it runs code: as far as it could be read, it calls sklearn.svm.SVC()."
    assert advice(ContainerError("x", remedy="ask"), seen) == "ask"
    assert advice(ContainerError("x"), None) == ""


def test_import_without_a_call_is_dangerous_only_in_a_whole_pickle(tmp_path: Path) -> None:
    whole = judged(tmp_path, stream(name("posix.system")))
    assert "it imports posix.system." in whole.sentence
    text_file = judged(tmp_path, b"cos\nsin\ntan\n")
    assert (text_file.verdict, text_file.sentence, text_file.is_whole) == ("unknown", "", False)
    module = judged(tmp_path, name("torch.serialization") + op("EMPTY_DICT") + op("BUILD") + b"\xff")
    assert module.verdict == "dangerous"


def held(data: bytes) -> bytes:
    return call("torch.storage._load_from_bytes", op("BINBYTES", len(data).to_bytes(4, "little") + data))


def test_tensors_in_plain_pickles_are_harmless_if_what_is_in_them_is(tmp_path: Path) -> None:
    genuine = judge_unread(refused(CORPUS / "plain_pickle" / "tensor_p2.pkl"))
    assert (genuine.verdict, genuine.is_whole) == ("unknown", True)
    for data in (held(stream(proto(), EVIL)), held(b"\x80\x02\xff"), held(stream(NONE)) + op("POP") + EVIL):
        seen = judged(tmp_path, stream(proto(), data))
        assert seen.verdict == "dangerous"


def test_names_of_torchscript_are_not_pythons(tmp_path: Path) -> None:
    for data, verdict in ((name("__torch__.Net"), "unknown"), (EVIL, "dangerous")):
        records = [
            Record(name="a/constants.pkl", data=b"cut off"),
            Record(name="a/data.pkl", data=stream(data)),
        ]
        seen = judged(tmp_path, build_zip(*records))
        assert seen.verdict == verdict
