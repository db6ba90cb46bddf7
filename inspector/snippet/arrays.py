"""Code for NumPy's arrays, which `torch.from_numpy` makes tensors of on the CPU."""

from __future__ import annotations

from inspector.containers.notes import NoteKind
from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint
from inspector.records import dataclass
from inspector.safety.verdict import judge
from inspector.snippet.device import Device
from inspector.snippet.literals import literal
from inspector.snippet.pickled import RUNS_CODE
from inspector.snippet.script import Bracketed, Script, call, format_code

NPY, NPZ = "npy", "npz"
_OBJECTS = "# Arrays of objects are left out: torch has no such tensors, and loading them can run code."
_NO_TENSOR = "# torch has no tensors of this type."
_PROBABLY = "# Elements of two bytes without a type are probably bfloat16, which NumPy has not."
_VIEWED = 'torch.from_numpy({0}.view("uint16")).view(torch.bfloat16)'
_BFLOAT16 = "void16 "  # as their shapes are told
_NATIVE = '.astype({0}.dtype.newbyteorder("="))'


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What is known of a file of arrays.

    Attributes:
        bfloat16: The arrays, or the empty name of the one, of elements without a type that it probably is.
        names: The arrays, or the fields of one array, that are tensors; None where all are.
    """

    names: tuple[str, ...] | None = None
    is_tensor: bool = True
    bfloat16: tuple[str, ...] = ()
    has_objects: bool = False
    is_swapped: bool = False


def render_arrays(checkpoint: Checkpoint, path: str, device: Device) -> str:
    """Write the code that makes tensors of arrays on a device."""
    if judge(checkpoint).may_harm:
        raise PlanError(
            "loading this file can run commands if it is told to load objects",
            where=checkpoint.path,
            remedy="load it without allow_pickle, which leaves the objects out",
        )
    return arrays_code(checkpoint.format, path, device, _held(checkpoint))


def _held(checkpoint: Checkpoint) -> Held:
    names = dict.fromkeys(str(row.keys[0]) for row in checkpoint.tensors if len(row.keys) == 1)
    others = {str(row.keys[0]) for row in checkpoint.values if row.keys} - set(names)
    is_partial = bool(others) or any(len(row.keys) > 1 for row in checkpoint.tensors)
    return Held(
        names=tuple(names) if is_partial or checkpoint.format == NPY else None,
        is_tensor=any(not row.keys for row in checkpoint.tensors),
        bfloat16=tuple(
            str(row.keys[0]) if row.keys else ""
            for row in checkpoint.values
            if row.text.startswith(_BFLOAT16)
        ),
        has_objects=checkpoint.safety is not None,
        is_swapped=any(note.kind is NoteKind.SWAPPED for note in checkpoint.notes),
    )


def arrays_code(form: str, path: str, device: Device, held: Held | None = None) -> str:
    """Write the code for a file of which this is known."""
    held = held or Held()
    script = Script()
    script.need("import numpy")
    script.paragraph(*device.choice)
    lines = _of_one(path, device, held) if form == NPY else _of_several(path, device, held)
    script.paragraph(*lines)
    return script.text()


def _of_one(path: str, device: Device, held: Held) -> list[str]:
    if held.has_objects:
        return [RUNS_CODE, *call("checkpoint = numpy.load(", literal(path), "allow_pickle=True")]
    load = call("array = numpy.load(", literal(path))
    native = _NATIVE.format("array") if held.is_swapped else ""
    if held.is_tensor:
        return [*load, f"tensor = torch.from_numpy(array{native}){_to(device)}"]
    if held.bfloat16:
        return [_PROBABLY, *load, f"tensor = {_VIEWED.format('array')}{_to(device)}"]
    if not held.names:
        return [_NO_TENSOR, *load]
    made = f"torch.from_numpy(array[name].copy()){_to(device)}"
    return [*load, *_names(held.names), f"tensors = {{name: {made} for name in names}}"]


def _of_several(path: str, device: Device, held: Held) -> list[str]:
    lines = [_OBJECTS] if held.has_objects else []
    lines += call("arrays = numpy.load(", literal(path))
    source = "arrays.files"
    if held.names is not None:
        lines += _names(held.names)
        source = "names"
    if held.bfloat16:
        return [*lines, *_with_bfloat16(held, source, device)]
    if not held.is_swapped:
        made = f"torch.from_numpy(arrays[name]){_to(device)}"
        return [*lines, f"state_dict = {{name: {made} for name in {source}}}"]
    made = f"torch.from_numpy(array{_NATIVE.format('array')}){_to(device)}"
    loop = [f"for name in {source}:", "    array = arrays[name]", f"    state_dict[name] = {made}"]
    return [*lines, "state_dict = {}", *loop]


def _with_bfloat16(held: Held, source: str, device: Device) -> list[str]:
    array = "arrays[name]" + (_NATIVE.format("arrays[name]") if held.is_swapped else "")
    return [
        f"state_dict = {{name: torch.from_numpy({array}){_to(device)} for name in {source}}}",
        _PROBABLY,
        *_names(held.bfloat16),
        "for name in names:",
        f"    state_dict[name] = {_VIEWED.format('arrays[name]')}{_to(device)}",
    ]


def _names(names: tuple[str, ...]) -> list[str]:
    return format_code(Bracketed(head="names = [", items=tuple(map(literal, names)), tail="]"))


def _to(device: Device) -> str:
    return "" if device.is_cpu else f".to({device.code})"
