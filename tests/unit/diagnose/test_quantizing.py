"""How weights are packed is told by names and shapes together; what merely looks like it is left alone."""

from __future__ import annotations

from inspector.diagnose.quantizing import QUANTIZERS, find_quantizers
from inspector.model.checkpoint import Checkpoint
from tests.unit.report.rows import checkpoint, tensor

GPTQ = {"qweight": (512, 64), "qzeros": (32, 8), "scales": (32, 64), "g_idx": (4096,)}
AWQ = {"qweight": (4096, 8), "qzeros": (32, 8), "scales": (32, 64)}
INT8 = {"weight": (64, 64), "SCB": (64,)}
FOUR = {"weight": (2048, 1), "weight.absmax": (64,), "weight.quant_map": (16,)}


def layer(
    shapes: dict[str, tuple[int, ...]], place: str = "model.layers.0.q_proj", dtype: str = "int32"
) -> list[object]:
    return [tensor(f"{place}.{name}", shape=shape, dtype=dtype) for name, shape in shapes.items()]


def found(*rows: object) -> dict[str, list[str]]:
    made: Checkpoint = checkpoint(*rows)
    return {row.name: paths for row, paths in find_quantizers(made)}


def test_each_way_of_packing() -> None:
    nf4 = {**FOUR, "weight.quant_state.bitsandbytes__nf4": (80,)}
    fp4 = {**FOUR, "weight.quant_state.bitsandbytes__fp4": (80,)}
    expected = {
        "GPTQ": (layer(GPTQ), "qweight"),
        "AWQ": (layer(AWQ), "qweight"),
        "bitsandbytes (LLM.int8)": (layer(INT8, dtype="int8"), "SCB"),
        "bitsandbytes (4 bits)": (layer(nf4, dtype="uint8"), "weight.quant_state.bitsandbytes__nf4"),
    }
    assert expected.keys() == {row.name for row in QUANTIZERS}
    for name, (rows, told_by) in expected.items():
        assert found(*rows) == {name: [f"model.layers.0.q_proj.{told_by}"]}, name
    assert list(found(*layer(fp4, dtype="uint8"))) == ["bitsandbytes (4 bits)"]


def test_layers_below_a_key_and_several_of_them() -> None:
    rows = [
        tensor("model", f"l{place}.{name}", shape=shape, dtype="int32")
        for place in "ab"
        for name, shape in GPTQ.items()
    ]
    assert found(*rows) == {"GPTQ": ["model/la.qweight", "model/lb.qweight"]}


def test_what_only_looks_like_it() -> None:
    for rows in (
        layer(INT8, dtype="float32"),
        layer({"SCB": (64,)}, dtype="int8"),
        layer({"qweight": (512, 64), "scales": (32, 64)}),
        layer({"qweight": (512, 64), "g_idx": (4096,), "scales": (32, 8)}),
        layer({"qweight": (512, 64), "qzeros": (32, 8), "scales": (32, 64)}),  # packed neither way
        layer({"qweight": (512,), "qzeros": (8,), "scales": (8,)}),
        layer(GPTQ, dtype="float32"),
        layer(AWQ, dtype="int64"),
        layer({"weight": (1, 1), "scales": (1, 1), "qzeros": (1, 1)}),
        [tensor("qweight", shape=(1, 1)), tensor("qzeros", shape=(1, 1))],
    ):
        assert found(*rows) == {}


def test_rows_say_where_the_names_were_read() -> None:
    for row in QUANTIZERS:
        assert row.source.startswith("https://")
        assert row.instead.endswith(".")
