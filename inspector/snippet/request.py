"""What a style is asked to write: the file, what is in it, and where it goes."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint
from inspector.records import dataclass
from inspector.snippet.inventory import Inventory
from inspector.snippet.models import Model
from inspector.snippet.placement import Placement
from inspector.target.machine.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One snippet to be written.

    Attributes:
        checkpoint: The file.
        inventory: Where things stand in it.
        placement: Where its devices go.
        target: The machine.
        path: The path to load.
    """

    checkpoint: Checkpoint
    inventory: Inventory
    placement: Placement
    target: Profile
    path: str

    @property
    def models(self) -> tuple[tuple[str, Model], ...]:
        """The models with a variable for each."""
        return tuple(zip(numbered("model", len(self.inventory.models)), self.inventory.models, strict=True))

    @property
    def model_devices(self) -> tuple[str, ...]:
        """The saved devices of all models."""
        return tuple(device for model in self.inventory.models for device in model.devices)

    @property
    def root(self) -> str:
        """The variable for what `torch.load` gives back."""
        if self.checkpoint.root == "tensor":
            return "tensor"
        at_root = [model for model in self.inventory.models if not model.keys]
        if not at_root:
            return "checkpoint"
        return "model" if at_root[0].is_module else "state_dict"


def numbered(name: str, count: int) -> tuple[str, ...]:
    """Return variables for several things of one kind: `optimizer`, `optimizer_2`, ..."""
    return tuple(name if number == 1 else f"{name}_{number}" for number in range(1, count + 1))
