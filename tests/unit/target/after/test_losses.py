from __future__ import annotations

from inspector.target.parts import is_loss_name, is_loss_weight


def test_names_of_losses() -> None:
    for name in (
        "criterion",
        "criteria",
        "loss",
        "loss_fn",
        "losses",
        "loss_function",
        "bce_loss",
        ".criterion2",
        "loss_cls",
        "head_loss_bbox",
    ):
        assert is_loss_name(name), name
    for name in ("glossary", "lossless", "loss_history", "floss", 0, ""):
        assert not is_loss_name(name), name
    for name in ("pos_weight", "class_weights", "criterion.pos_weight", "cls_weights", "my_loss_weight"):
        assert is_loss_weight(name), name
    for name in ("weight", "outclass_weight_x", "position_weights", 3):
        assert not is_loss_weight(name), name
