from __future__ import annotations

from inspector.containers.numpy_types import created, from_buffer, reconstructed, wrapped
from inspector.containers.opening import read_container
from inspector.pickles.values import Call, Dict, Global, StoredTensor
from tests.corpus import CORPUS


def test_dill_s_way_of_making_an_array() -> None:
    root = read_container(str(CORPUS / "plain_pickle/dill.pkl")).root
    assert isinstance(root, Dict)
    found = dict(root.pairs)["n"]
    assert isinstance(found, StoredTensor)
    assert (found.dtype, found.shape, found.stride) == ("float32", (2, 3), (1, 2))


def test_other_calls_are_none() -> None:
    for func in (Global("m", "f"), Call(Global("m", "f"), (), "reduce")):
        call = Call(func, (), "reduce")
        assert [read(call) for read in (created, from_buffer, reconstructed, wrapped)] == [None] * 4
    assert created(Call(Global("dill._dill", "_create_array"), (1,), "reduce")) is None
