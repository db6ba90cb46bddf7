"""Style `data`: batches out of a file of tensors, samples, a dataset or a loader.

The data stays on the CPU: it rarely fits elsewhere, and the processes of a `DataLoader` cannot share what is
on a GPU. So each batch moves when it is used.
"""

from __future__ import annotations

from inspector.snippet.device import Device, choose_device
from inspector.snippet.literals import lookup
from inspector.snippet.loading import write_load
from inspector.snippet.request import Request
from inspector.snippet.script import Script, call
from inspector.snippet.traits import Data, find_data

_STAYS = "# The data stays on the CPU; each batch is moved when it is used."
_MOVE = (
    "",
    "def move(batch):",
    "    if torch.is_tensor(batch):",
    "        return batch.to({device})",
    "    if isinstance(batch, dict):",
    "        return {{name: move(part) for name, part in batch.items()}}",
    "    if isinstance(batch, (list, tuple)):",
    "        return [move(part) for part in batch]",
    "    return batch",
    "",
)


def render(request: Request) -> str:
    """Write the code that gives batches on the device."""
    script, data = Script(), find_data(request.checkpoint) or Data(kind="dataset", places=((),))
    places, tensors = request.placement.places, request.checkpoint.tensors
    dtypes = {tensor.dtype for tensor in tensors}
    device = request.placement.one_device(places, choose_device(request.target, dtypes))
    if data.kind != "columns" and not device.is_cpu:
        script.paragraph(*(line.format(device=device.code) for line in _MOVE))
    if not device.is_cpu:
        script.paragraph(*device.choice)
    root = data.kind if data.places == ((),) and data.kind != "columns" else "data"
    write_load(script, request, request.placement.for_copying(), root=root)
    script.paragraph(*_loader(script, data, root))
    script.paragraph(*_loop(data, device))
    return script.text()


def _loader(script: Script, data: Data, root: str) -> list[str]:
    place = lookup(root, data.places[0])
    if data.kind == "loader":
        return [] if place == "loader" else [f"loader = {place}"]
    lines = []
    if data.kind == "columns":
        columns = tuple(lookup(root, keys) for keys in data.places)
        script.need("from torch.utils.data import DataLoader, TensorDataset")
        lines = call("dataset = TensorDataset(", *columns)
    else:
        script.need("from torch.utils.data import DataLoader")
        lines = [] if place == "dataset" else [f"dataset = {place}"]
    return [*lines, "loader = DataLoader(dataset, batch_size=32, shuffle=True)"]


def _loop(data: Data, device: Device) -> tuple[str, ...]:
    if device.is_cpu:
        return ()
    moved = f"[part.to({device.code}) for part in batch]" if data.kind == "columns" else "move(batch)"
    return (_STAYS, "for batch in loader:", f"    batch = {moved}")
