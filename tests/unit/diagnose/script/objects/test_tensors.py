from __future__ import annotations

from inspector.diagnose.script.objects.tensors import mix_message
from tests.unit.diagnose.script.following import check


def test_tensors() -> None:
    check("tensors")


def test_words_of_torch_by_release() -> None:
    rows = [
        (
            "linear",
            "cpu",
            "cuda:0",
            (2, 13),
            "but got mat1 is on cpu, different from other tensors on cuda:0",
        ),
        ("linear", "cpu", "cuda:0", (2, 1), "but found at least two devices, cuda:0 and cpu!"),
        ("other", "cuda:0", "cpu", (2, 13), "but found at least two devices, cuda:0 and cpu!"),
        (
            "conv",
            "cpu",
            "cuda:0",
            (2, 13),
            "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor)",
        ),
    ]
    assert [row for row in rows if row[4] not in mix_message(*row[:4])] == []
