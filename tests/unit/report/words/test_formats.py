from __future__ import annotations

from inspector.containers.container import Part
from inspector.containers.formats import FORMATS
from inspector.report.words.formats import format_label, names_devices, nothing_to_map
from tests.unit.report.rows import checkpoint, storage, tensor

NOWHERE = (tensor("a", device="none", storage="0"), storage("0", "none"))
ON_A_GPU = (tensor("a", device="cuda:0", storage="0"), storage("0", "cuda:0"))


def test_label_has_no_article_and_counts_the_files() -> None:
    assert format_label(checkpoint()) == "torch.save zip"
    assert format_label(checkpoint(format="pt2")) == "torch.export archive"
    parts = (Part("/a", 1), Part("/b", 2))
    assert format_label(checkpoint(format="dcp", parts=parts)) == "distributed checkpoint (DCP), 2 files"


def test_why_there_is_nothing_to_map_is_one_sentence_for_each_format() -> None:
    assert nothing_to_map(checkpoint(*ON_A_GPU)) == ""
    assert nothing_to_map(checkpoint()) == ""  # no tensors, so no question
    told = nothing_to_map(checkpoint(*NOWHERE, format="safetensors"))
    assert told == "No devices are stored here: load_file(path, device=...) decides."
    assert nothing_to_map(checkpoint(format="deepspeed")) == ""
    told = nothing_to_map(checkpoint(*ON_A_GPU, format="deepspeed"))
    assert told == "DeepSpeed loads its folders to the CPU, so their devices decide nothing."
    for row in FORMATS:
        told = nothing_to_map(checkpoint(*NOWHERE, format=row.name))
        assert told.endswith((" decides.", " decide.")), row.name


def test_one_device_among_tensors_without_any_can_be_mapped() -> None:
    assert not names_devices(checkpoint(*NOWHERE))
    assert names_devices(checkpoint(*NOWHERE, *ON_A_GPU))
    assert names_devices(checkpoint())
