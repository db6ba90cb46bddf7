from __future__ import annotations

from itertools import product
from math import prod

import pytest

from inspector.report import architecture
from inspector.report.architecture import (
    FAMILIES,
    Weight,
    exact_name,
    find_blocks,
    find_family,
    recurrent_kind,
)
from tests.unit.report import models
from tests.unit.report.models import Named, linear


def weights(named: Named) -> list[Weight]:
    return [Weight(name, shape, prod(shape), is_plain=True) for name, shape in named]


def family(named: Named) -> str:
    rows = weights(named)
    found = find_family(row.name for row in rows)
    return "" if found is None else exact_name(found, rows)


def blocks(named: Named) -> list[tuple[str, tuple[int, ...], int | None]]:
    return [(row.where, row.counts, row.width) for row in find_blocks(weights(named))]


@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: f"{row.name}, {row.source}")
def test_the_sample_of_a_family_is_told_as_it_and_as_no_other(row):
    assert [one for one in FAMILIES if architecture._fits(one, text_of(row.sample))] == [row]
    assert find_family(f"module.{name}" for name in row.sample) is row
    assert all(row.has)
    assert row.source


def text_of(names: tuple[str, ...]) -> str:
    patterns = map(architecture.pattern_of, names)
    return "".join(f".{name}\n" for name in (*patterns, *(name for name in names if "classifier." in name)))


@pytest.mark.parametrize(
    ("named", "name"),
    [
        (models.resnet((2, 2, 2, 2), is_deep=False), "ResNet-18"),
        (models.resnet((3, 4, 6, 3), is_deep=False), "ResNet-34"),
        (models.resnet((3, 4, 6, 3), is_deep=True), "ResNet-50"),
        (models.resnet((3, 4, 23, 3), is_deep=True), "ResNet-101"),
        (models.resnet((2, 3, 4, 2), is_deep=True), "ResNet"),
        (models.gpt2(2), "GPT-2"),
        (models.llama(range(2)), "Llama"),
        (models.llama(range(2), experts=8), "Mixtral"),
        (linear("net.0", 4, 4), ""),
    ],
)
def test_what_it_is_like(named, name):
    assert family(named) == name


def test_grouped_convolutions_are_no_resnet():
    named = [
        (name, (shape[0], 4, *shape[2:]) if ".conv2." in name else shape)
        for name, shape in models.resnet((3, 4, 6, 3), is_deep=True)
    ]
    assert family(named) == "ResNeXt"


@pytest.mark.parametrize(("gates", "kind"), [(4, "LSTM"), (3, "GRU"), (1, "RNN"), (2, "")])
def test_recurrent_layers_tell_themselves_by_their_gates(gates, kind):
    named = [("rnn.weight_ih_l0", (gates * 16, 8)), ("rnn.weight_hh_l0", (gates * 16, 16))]
    assert recurrent_kind(weights([*named, *linear("fc", 2, 16)])) == kind
    assert recurrent_kind(weights([*named, *linear("body", 1000, 1000)])) == ""


def test_blocks_are_counted_and_their_width_is_no_other_size():
    assert blocks(models.gpt2()) == [("transformer.h.N", (12,), 768)]
    assert blocks(models.llama()) == [("model.layers.N", (32,), 4096)]


def test_experts_are_no_blocks():
    (row,) = find_blocks(weights(models.llama(range(4), experts=8)))
    assert (row.where, row.counts, row.width, row.experts) == ("model.layers.N", (4,), 4096, 8)
    named = []
    for number, expert in product(range(2), range(4)):
        at = f"layers.{number}.experts.{expert}"
        named += [
            *linear(f"{at}.w1", 64, 16),
            *linear(f"{at}.w2", 16, 64),
            (f"layers.{number}.gate", (4, 16)),
        ]
    (row,) = find_blocks(weights(named))
    assert (row.where, row.counts, row.experts) == ("layers.N", (2,), 4)


def test_the_blocks_of_a_part_of_a_model_keep_their_numbers():
    (row,) = find_blocks(weights(models.llama(range(16, 32), is_whole=False)))
    assert (row.counts, row.numbers) == ((16,), (16, 31))


def test_stages_are_no_blocks():
    """A ConvNeXt has four stages of blocks; a ResNet names its stages without a number of their own."""
    named = []
    for stage, count in enumerate((3, 3, 9, 3)):
        named += [(f"stages.{stage}.downsample.1.weight", (96 << stage, 96, 2, 2))]
        for number in range(count):
            at, width = f"stages.{stage}.blocks.{number}", 96 << stage
            named += [(f"{at}.conv_dw.weight", (width, 1, 7, 7))]
            named += [*linear(f"{at}.mlp.fc1", 4 * width, width), *linear(f"{at}.mlp.fc2", width, 4 * width)]
    assert blocks(named) == [("stages.N.blocks.N", (3, 3, 9, 3), None)]
    counts = [counts for _, counts, _ in blocks(models.resnet((3, 4, 6, 3), is_deep=True))]
    assert counts == [(3,), (4,), (6,), (3,)]


def test_an_embedding_is_no_width_and_layers_in_a_row_are_no_blocks():
    mlp = [row for number in range(0, 8, 2) for row in linear(f"net.{number}", 64, 64)]
    assert blocks(mlp) == []
    assert blocks([("embedding.weight", (30000, 512)), *mlp]) == []
    heads = [
        row
        for number in range(3)
        for row in (*linear(f"head.{number}.a", 4, 8), *linear(f"head.{number}.b", 4, 8))
    ]
    assert blocks(heads) == [("head.N", (3,), None)]
    assert blocks([*heads, *linear("body", 100, 100)]) == []


def test_matrices_of_an_adapter_do_not_make_its_rank_a_width():
    adapters = [(name.removeprefix("base_model.model."), shape) for name, shape in models.lora(2)]
    assert blocks([*models.gpt2(2), *adapters]) == [("transformer.h.N", (2,), 768)]
    assert blocks(adapters) == [("transformer.h.N", (2,), None)]


def test_names_of_endless_forms_are_not_looked_through():
    known = [name for name, _ in models.gpt2(2)]
    assert find_family([*known, *(f"odd{number}" for number in range(100))]) is not None
    assert find_family([*known, *(f"odd{number}" for number in range(5_000))]) is None
    assert find_blocks(weights((f"{'1.' * 500}{number}.weight", (2, 2)) for number in range(100))) == ()
