#!/usr/bin/env python3
"""Write `inspector/model/optimizer/orders.json`: the order of the parts of transformers' models.

Usage: make_orders.py [TYPE ...], in an environment with torch and transformers. Each type's models are made
on the meta device, with two layers; rows that are part of another are left out. ViT's names are kept as its
files have them, in both orders that transformers has had.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.models.auto import modeling_auto

TABLE = Path(__file__).parents[1] / "inspector" / "model" / "optimizer" / "orders.json"
HEADS = (
    "", "FOR_CAUSAL_LM_", "FOR_MASKED_LM_", "FOR_SEQUENCE_CLASSIFICATION_", "FOR_TOKEN_CLASSIFICATION_",
    "FOR_QUESTION_ANSWERING_", "FOR_SEQ_TO_SEQ_CAUSAL_LM_", "FOR_IMAGE_CLASSIFICATION_", "FOR_PRETRAINING_",
    "FOR_SPEECH_SEQ_2_SEQ_", "FOR_AUDIO_CLASSIFICATION_", "FOR_CTC_", "FOR_OBJECT_DETECTION_",
    "FOR_SEMANTIC_SEGMENTATION_",
)  # fmt: skip
LAYERS = (
    "num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers",
    "num_decoder_layers",
)  # fmt: skip
AS_SAVED = {
    "vit": (
        "attention intermediate output layernorm_before layernorm_after",
        "attention layernorm_before layernorm_after intermediate output",
        "attention output",
        "embeddings encoder layernorm pooler",
        "query key value",
    )
}


def main(types: list[str]) -> int:
    """Write the table anew for these types, or for those that it has."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    for kind in types or list(table["types"]):
        rows = {row for names in _models(kind) for row in _rows(names)}
        kept = {" ".join(row) for row in rows if not any(_is_part(row, other) for other in rows)}
        table["types"][kind] = sorted({*kept, *AS_SAVED.get(kind, ())})
    table["types"] = dict(sorted(table["types"].items()))
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    return 0


def _models(kind: str) -> Iterator[list[str]]:
    """Yield the names of the parameters of each model of a type, in order."""
    for head in HEADS:
        named = getattr(modeling_auto, f"MODEL_{head}MAPPING_NAMES").get(kind)
        name = named[0] if isinstance(named, tuple | list) else named
        if name is None:
            continue
        config = transformers.AutoConfig.for_model(kind)
        for part in (config, getattr(config, "text_config", None), getattr(config, "vision_config", None)):
            _shorten(part)
        try:
            with torch.device("meta"):
                model = getattr(transformers, name)(config)
        except (ValueError, AttributeError) as error:
            sys.stderr.write(f"{name}: {error}\n")
            continue
        yield [name for name, _ in model.named_parameters()]


def _shorten(config: Any) -> None:  # noqa: ANN401 - a configuration of any model
    for name in LAYERS:
        if isinstance(getattr(config, name, None), int):
            setattr(config, name, 2)
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:2]


def _rows(names: list[str]) -> set[tuple[str, ...]]:
    below: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    for name in names:
        steps = tuple(name.split("."))
        for end, step in enumerate(steps):
            below[steps[:end]][step] = None
    rows = {tuple(steps) for steps in below.values()}
    return {
        row for row in rows if len(row) > 1 and not all(map(str.isdecimal, row)) and row != ("weight", "bias")
    }


def _is_part(row: tuple[str, ...], other: tuple[str, ...]) -> bool:
    left = iter(other)
    return row != other and all(step in left for step in row)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
