from __future__ import annotations

from inspector.report.charts.bars import device_chart, dtype_chart, role_chart
from inspector.session.present.compose import marks_of
from tests.unit.report.rows import checkpoint, storage, tensor, value
from tests.unit.session.documents import document_of

FILE = checkpoint(
    tensor("m", "a", storage="0", device="cuda:0", dtype="float8_e4m3fn"),
    tensor("m", "b", storage="1", device="cuda:1", role="buffer", dtype="float8_e4m3fnuz"),
    value("epoch"),
    storage("0", "cuda:0", 10),
    storage("1", "cuda:1", 20),
)


def test_the_parts_that_a_row_belongs_to() -> None:
    document = document_of(FILE)
    charts = (device_chart(FILE, {}, {}), role_chart(FILE), dtype_chart(FILE))
    first, second = document.tree.tensor_nodes
    assert marks_of(document, first, charts) == ("device:cuda:0", 'dtype:"float8_e4m3fn"', "role:parameter")
    assert marks_of(document, second, charts) == ("device:cuda:1", "dtype:float8_e4m3fnuz", "role:buffer")
    assert marks_of(document, document.tree.nodes[first].parent, charts) == ("device:cuda:0", "device:cuda:1")
    for nothing in (None, 0, document.tree.value_nodes[0], 10**6):
        assert marks_of(document, nothing, charts) == ()
