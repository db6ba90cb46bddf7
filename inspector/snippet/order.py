"""What a style is asked to write: the file, what is in it, and where it shall go."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint
from inspector.records import dataclass
from inspector.snippet.contents import Contents
from inspector.snippet.models import Model
from inspector.snippet.placement import Placement
from inspector.target.machine.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One snippet to be written.

    Attributes:
        checkpoint: The file.
        contents: Where things stand in it.
        placement: Where its devices go.
        target: The machine.
        path: The path to load.
    """

    checkpoint: Checkpoint
    contents: Contents
    placement: Placement
    target: Profile
    path: str

    @property
    def models(self) -> tuple[tuple[str, Model], ...]:
        """The models with a variable for each."""
        return tuple(zip(numbered("model", len(self.contents.models)), self.contents.models, strict=True))

    @property
    def root(self) -> str:
        """The variable for what `torch.load` gives back."""
        if self.checkpoint.root == "tensor":
            return "tensor"
        at_root = [model for model in self.contents.models if not model.keys]
        if not at_root:
            return "checkpoint"
        return "model" if at_root[0].is_module else "state_dict"


def numbered(name: str, count: int) -> tuple[str, ...]:
    """Give variables for several things of one kind: `optimizer`, `optimizer_2`, ..."""
    return tuple(name if number == 1 else f"{name}_{number}" for number in range(1, count + 1))
