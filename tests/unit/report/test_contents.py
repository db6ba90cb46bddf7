from __future__ import annotations

import pytest

from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, Storage
from inspector.records import replace
from inspector.report.contents import ModelFacts, find_contents, summary_of
from inspector.report.tree import build_tree
from tests.corpus import CORPUS
from tests.frameworks.cases import FILES
from tests.unit.report import models
from tests.unit.report.models import state
from tests.unit.report.rows import checkpoint, storage, tensor


def of(*rows: object, **fields: object) -> ModelFacts:
    contents = find_contents(checkpoint(*rows, **fields))
    assert len(contents.models) == 1
    return contents.models[0]


@pytest.mark.parametrize(
    ("named", "parameters", "said"),
    [
        (models.gpt2(), 124_439_808, "GPT-2-like, 12 blocks of 768"),
        (models.resnet((3, 4, 6, 3), is_deep=True), 25_557_032, "ResNet-50-like, 3 + 4 + 6 + 3 blocks"),
        (models.resnet((2, 2, 2, 2), is_deep=False), 11_689_512, "ResNet-18-like, 2 + 2 + 2 + 2 blocks"),
        (models.llama(), 7_241_732_096, "Llama-like, 32 blocks of 4,096"),
        (models.llama(experts=8), 46_702_792_704, "Mixtral-like, 32 blocks of 4,096, 8 experts each"),
    ],
)
def test_the_parameters_of_known_models_are_as_many_as_their_papers_say(named, parameters, said):
    rows = checkpoint(*state(named))
    (model,) = find_contents(rows).models
    assert model.parameters == parameters
    assert model.parameters_nbytes == 4 * parameters
    assert summary_of(rows) == said


def test_tied_weights_count_once_even_transposed():
    first, *rows = state(models.gpt2())
    (embedding, *rest) = [row._replace(tensors=2) if isinstance(row, Storage) else row for row in rows]
    for shape, stride in (((50257, 768), (768, 1)), ((768, 50257), (1, 768))):
        model = of(
            first, embedding, *rest, first._replace(**called("lm_head.weight"), shape=shape, stride=stride)
        )
        assert model.parameters == 124_439_808
        assert model.tied == (("lm_head.weight", "transformer.wte.weight"),)
        assert model.nbytes == 4 * 124_439_808


def test_what_views_a_part_is_not_called_the_whole():
    first, *rows = state(models.gpt2())
    (embedding, *rest) = [row._replace(tensors=2) if isinstance(row, Storage) else row for row in rows]
    half = first._replace(**called("half.weight"), shape=(768, 768), stride=(768, 1), nbytes=4 * 768 * 768)
    assert of(first, embedding, *rest, half).tied == (("half.weight", "a part of transformer.wte.weight"),)


def called(name: str) -> dict[str, object]:
    return {"keys": (name,), "path": name}


def test_buffers_are_no_parameters_and_a_cast_leaves_counters():
    model = of(*state(models.batch_norm("bn", 64)))
    assert (model.parameters, model.buffers) == (128, 3)
    assert (model.parameters_nbytes, model.buffers_nbytes) == (512, 520)
    assert (model.floats, model.others_nbytes) == (256, 8)


def test_optimizer_state_is_no_part_of_a_model():
    named = list(models.linear("fc", 3, 4))
    contents = find_contents(checkpoint(*state(named, "model"), *models.slots(named, "optimizer")))
    assert [model.parameters for model in contents.models] == [15]


def test_averages_and_copies_are_counted_apart_however_many_there_are():
    named = list(models.linear("fc.0", 3, 4))
    rows = [*state(named, "model"), *state(named, "best_model"), *state(named, "ema", role="ema")]
    contents = find_contents(checkpoint(*rows, *state(named, "ema_slow", role="ema")))
    assert [model.path for model in contents.models] == ["model"]
    assert [model.path for model in contents.copies] == ["best_model"]
    assert [model.path for model in contents.averages] == ["ema", "ema_slow"]


def test_an_average_alone_is_the_model():
    (model,) = find_contents(checkpoint(*state(models.gpt2(2), "ema", role="ema"))).models
    assert model.is_average
    assert model.family == "GPT-2-like"
    assert model.parameters == 124_439_808 - 10 * 7_087_872


def test_the_count_of_averages_is_no_part_of_a_model():
    named = [("n_averaged", ()), *models.linear("module.0", 3, 4)]
    contents = find_contents(
        checkpoint(*state(models.linear("0", 3, 4), "model"), *state(named, "swa", role="ema"))
    )
    assert [(one.parameters, one.buffers, one.others_nbytes) for one in contents.averages] == [(15, 0, 0)]


def test_two_models_of_the_same_names_are_two():
    """The discriminators of a CycleGAN have the same names and shapes, and both are needed."""
    named = list(models.linear("main.0", 3, 4))
    contents = find_contents(checkpoint(*state(named, "netD_A"), *state(named, "netD_B")))
    assert [model.path for model in contents.models] == ["netD_A", "netD_B"]
    assert contents.copies == ()


def test_what_is_quantized_is_told_by_what_is_stored():
    whole = tensor("fc.weight", shape=(8, 16), dtype="bfloat16", nbytes=256)
    parts = [
        tensor("fc.weight", ".qdata", shape=(8, 16), dtype="int8", nbytes=128, storage="0", part_of=0),
        tensor("fc.weight", ".scale", shape=(8, 1), nbytes=32, storage="1", part_of=0),
    ]
    model = of(whole, *parts, tensor("fc.bias", shape=(8,), nbytes=32, storage="2"), *map(storage, "012"))
    assert model.dtypes == (("int8", 128), ("float32", 8))
    assert (model.parameters, model.nbytes) == (136, 192)


def test_packed_matrices_are_counted_and_not_their_numbers():
    packed = tensor("fc.qweight", shape=(8, 16), dtype="int32", nbytes=512, storage="0", role="buffer")
    model = of(packed, tensor("fc.bias", shape=(16,), nbytes=64, storage="1"), *map(storage, "01"))
    assert (model.parameters, model.packed, model.buffers) == (16, 1, 0)


def test_an_adapter_is_told_with_its_rank():
    rows = checkpoint(*state(models.lora(rank=8)))
    assert summary_of(rows) == "LoRA adapter, rank 8, in 12 blocks"
    assert summary_of(checkpoint(*state(models.lora(range(2).stop)), *state(models.gpt2(2)))) != summary_of(
        rows
    )


def test_a_model_of_too_many_tensors_is_counted_and_not_looked_through(monkeypatch):
    monkeypatch.setattr("inspector.report.contents._MOST_TOLD", 20)
    model = of(*state(models.gpt2()))
    assert (model.parameters, model.family, model.blocks) == (124_439_808, "", ())


def test_nothing_false_is_said_of_what_is_not_known():
    assert summary_of(checkpoint(*state(models.linear("fc.0", 3, 4)))) == ""
    assert summary_of(checkpoint()) == ""
    assert find_contents(checkpoint(*models.slots(models.linear("fc", 3, 4)))).models == ()


@pytest.mark.wide
def test_the_models_of_a_file_have_the_parameters_that_its_tree_counts():
    """What is no model is in the tree alone: storages, packed modules, what an optimizer has."""
    apart = {
        "dynamic_int8.pt",
        "dynamic_int8_whole.pt",
        "export.pkl",
        "optimizer_alone_cuda.pt",
        "storages.pt",
    }
    compared = 0
    for root in (FILES, CORPUS):
        for path in sorted(root.rglob("*")):
            rows = None if "oracle" in path.parts else readable(str(path))
            if rows is None:
                continue
            contents = find_contents(rows)
            found = [one for one in (*contents.models, *contents.copies) if not one.is_average]
            counted, whole = sum(one.parameters for one in found), build_tree(rows, {}).nodes[0].parameters
            assert counted <= whole, path
            if path.name not in apart and "_misc." not in path.name:
                assert counted == whole, path
            compared += bool(counted)
    assert compared > 150


def readable(path: str) -> Checkpoint | None:
    try:
        return open_checkpoint(path)
    except CheckpointError:
        return None


def test_a_program_is_one_model():
    rows = (tensor("0", "weight", storage="0"), tensor("1", "weight", storage="1"), *map(storage, "01"))
    assert len(find_contents(replace(checkpoint(*rows), is_program=True)).models) == 1
