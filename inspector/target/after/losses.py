"""What losses and the weights of one are called: code has the same objects under these names."""

from __future__ import annotations

import re
from functools import cache

from inspector.model.checkpoint import Key

_MOST_NAME = 80


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what tells a loss and the weights of one by their names, compiled when they are needed."""
    part = r"(?:cls|class|bbox|box|reg|iou|mask|obj|dfl|ce|bce|kl|mse|l1)"
    loss = rf"(?:\w{{1,30}}_)?(?:criteri(?:on|a)|loss(?:es)?|loss_?f(?:n|unc|unction)|loss_{part})[0-9_]*"
    weights = r"(?:.*[._])?(?:pos|class|cls|loss)_weights?"
    return re.compile(loss, re.IGNORECASE), re.compile(weights, re.IGNORECASE)


def is_loss_name(key: Key) -> bool:
    """Return whether a key is a usual name of a loss module: `criterion`, `loss_fn`, `loss_cls`."""
    return isinstance(key, str) and _patterns()[0].fullmatch(key.removeprefix(".")) is not None


def is_loss_weight(key: Key) -> bool:
    """Return whether a key is a usual name of the weights of a loss: `pos_weight`, `class_weights`."""
    return isinstance(key, str) and _patterns()[1].fullmatch(key[-_MOST_NAME:]) is not None
