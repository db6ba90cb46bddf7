from __future__ import annotations

from pathlib import Path

from inspector.model.build import open_checkpoint
from tests.builders.pickles import call, list_, name, op, proto, stream, text
from tests.corpus import CORPUS
from tests.sweep import table

OPENER = "torch.storage._load_from_bytes"


@table(
    ("file", "names"),
    [
        ("plain_pickle/state_p2.pkl", (OPENER,)),
        ("joblib/arrays.joblib", ("joblib.numpy_pickle.NumpyArrayWrapper", OPENER)),
        ("zip/state_dict.pt", ()),
    ],
)
def test_bytes_that_were_all_read(file: str, names: tuple[str, ...]) -> None:
    assert open_checkpoint(str(CORPUS / file)).needs.read_within == names


def test_a_name_that_is_handed_on_may_be_called(tmp_path: Path) -> None:
    opened = (CORPUS / "plain_pickle/tensor_p4.pkl").read_bytes()
    path = tmp_path / "a.pkl"
    for more in (
        stream(proto(), name(OPENER)),
        stream(proto(), call("m.f", list_(name(OPENER)))),
        stream(proto(), call("m.f"), text("k"), name(OPENER), op("SETITEM")),
        stream(proto(), call("m.f"), name(OPENER), op("APPEND"), op("POP"), op("NONE")),
        stream(proto(), call(OPENER, text("no bytes"))),
    ):
        path.write_bytes(opened + more)
        assert open_checkpoint(str(path)).needs.read_within == ()
    path.write_bytes(opened + stream(proto(), op("NONE")))
    assert open_checkpoint(str(path)).needs.read_within == (OPENER,)
