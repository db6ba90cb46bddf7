"""Files whose loader checks nothing: what is said of them is never better than that."""

from __future__ import annotations

from pathlib import Path

from inspector.model.build import open_checkpoint
from inspector.report.words.verdicts import load_verdict
from inspector.safety.verdict import judge
from inspector.safety.words import verdict_words
from inspector.target.call import load_call
from inspector.target.opening import OTHER_LOADER, opening_failure
from inspector.target.profile import CPU_ONLY
from inspector.target.simulate import Judged, judge_load
from tests.builders.pickles import NONE, call, dict_, number, op, proto, stream, text
from tests.corpus import CORPUS
from tests.sweep import table

CASES = [
    (
        stream(proto(), dict_((text("a"), number(1)))),
        "runs-code",
        "names only what makes tensors, arrays and plain",
    ),
    (
        stream(proto(), call("mine.Config")),
        "runs-code",
        "This one names mine.Config: load it only if you trust",
    ),
    (
        stream(proto(), call("posix.system")),
        "dangerous",
        "pickle.load imports posix.system, which can run anything",
    ),
    (stream(proto(), call("torch.storage._load_from_bytes", NONE)), "dangerous", "_load_from_bytes"),
]


@table(("data", "verdict", "reason"), CASES)
def test_verdicts(data: bytes, verdict: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pkl"
    path.write_bytes(data)
    found = judge(open_checkpoint(str(path)))
    assert (found.verdict, found.weights_only, found.to_allow) == (verdict, False, ())
    assert reason in " ".join(found.reasons)
    assert found.loader == "pickle.load"
    assert found.answer.kind == "errors"
    said = verdict_words(found)
    assert ("pickle.load runs whatever the file names" in said) == (verdict == "runs-code")


def test_tensors_whose_bytes_were_read_are_harmless_and_still_unchecked() -> None:
    for file in ("plain_pickle/state_p4.pkl", "joblib/arrays.joblib"):
        checkpoint = open_checkpoint(str(CORPUS / file))
        assert judge(checkpoint).verdict == "runs-code"
        assert judge(checkpoint).calls == ()
        load = judge_load(checkpoint, CPU_ONLY)
        assert not load.is_safe
        assert load.failure.finding == "cuda-unavailable"
        judged = Judged(checkpoint=checkpoint, target=CPU_ONLY, load=load)
        assert load_verdict(judged, (), "a node").why == "saved on cuda:1"
        assert verdict_words(load.safety).endswith("names, which is only tensors, arrays and plain data")


def test_what_torch_load_says_to_a_plain_pickle(tmp_path: Path) -> None:
    path = tmp_path / "a.pkl"
    said = {}
    for data in (CASES[0][0], CASES[1][0], stream(proto(3), op("SHORT_BINBYTES", b"\1a"))):
        path.write_bytes(data)
        checkpoint = open_checkpoint(str(path))
        failure = opening_failure(checkpoint, CPU_ONLY, load_call(checkpoint, judge(checkpoint)))
        assert failure[0] == OTHER_LOADER
        said[data] = failure[1]
    magic, name, opcode = said.values()
    assert magic == "RuntimeError: Invalid magic number; corrupt file?"
    assert "Unsupported global: GLOBAL mine.Config" in name
    assert "Unsupported operand 67" in opcode
    packed = open_checkpoint(str(CORPUS / "joblib/arrays_xz.joblib"))
    failure = opening_failure(packed, CPU_ONLY, load_call(packed, judge(packed)))
    assert "Unsupported operand 253" in failure[1]
