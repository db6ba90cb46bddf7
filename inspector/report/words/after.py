"""What becomes of a tensor after `torch.load`, in words: whether the file or the code decides its device."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint
from inspector.target.after_load import is_registered
from inspector.target.parts import Form, Kind, sorter_of

_STAYS = "It stays where torch.load puts it."
_COPIED = "load_state_dict copies it to the device of your model's own tensor."
_WORDS = {
    (Kind.MODEL, Form.STATE): _COPIED,
    (Kind.AVERAGE, Form.STATE): _COPIED,
    (Kind.LOSS, Form.STATE): "load_state_dict copies it to where your code made the loss.",
    (
        Kind.OPTIMIZER,
        Form.STATE,
    ): "optimizer.load_state_dict gives it the device and dtype of its parameter.",
    (Kind.OPTIMIZER, Form.OBJECT): "The optimizer is used as loaded: this stays where torch.load puts it.",
    (Kind.RNG, Form.TENSORS): "It stays where torch.load puts it, and is accepted on the CPU only.",
}
_LEFT = "optimizer.load_state_dict leaves it where torch.load puts it."
_MOVED_COUNTER = "optimizer.load_state_dict moves it to its parameter: the optimizer is capturable or fused."
_MODULE = "It stays where torch.load puts it, until .to(device) moves the module."
_ATTRIBUTE = "It stays where torch.load puts it: .to(device) does not move plain attributes."


class AfterWords:
    """Returns for one tensor after the other what becomes of it; looks a checkpoint through once."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Look it through."""
        self._checkpoint = checkpoint
        self._sorter = sorter_of(checkpoint)
        self._moves_counters = {one.path for one in checkpoint.optimizers if one.capturable}

    def of(self, index: int) -> str:
        """Return what becomes of a tensor, in a sentence."""
        row = self._checkpoint.tensors[index]
        if row.part_of is not None:
            row = self._checkpoint.tensors[row.part_of]
        kind, form, length = self._sorter.place(row)
        if form is Form.OBJECT and kind is not Kind.OPTIMIZER:
            return _MODULE if is_registered(row) else _ATTRIBUTE
        if kind is Kind.OPTIMIZER and form is Form.STATE and (row.slot is None or row.keys[-1] == "step"):
            path = "/".join(row.path.split("/", length)[:length])
            return _MOVED_COUNTER if row.slot and path in self._moves_counters else _LEFT
        return _WORDS.get((kind, form), _STAYS)
