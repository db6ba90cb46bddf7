"""Messages of what runs after the load: mixed devices and dtypes, shapes, optimizers and their states."""

from __future__ import annotations

import re
from collections import Counter

from inspector.diagnose.errors.explanation import Context, Tied, Told
from inspector.diagnose.errors.paste import Pasted, Step
from inspector.diagnose.errors.ties import by_finding, devices_of, of_finding, paths_on
from inspector.diagnose.listing import listed, plain
from inspector.model.checkpoint import Optimizer, Tensor
from inspector.model.findings import Fix
from inspector.records import dataclass
from inspector.units import cut_text, escape_text, format_count, format_shape

# --- in which step devices are mixed ------------------------------------------------------------------------

_LOAD = re.compile(r"\b(?:self\.)?\w{0,40}opt\w{0,20}(?:\[[^\]]{1,20}\])?\.load_state_dict\(", re.IGNORECASE)
_MOVE = re.compile(
    r"\b(?:self\.)?\w{0,40}(?:model|net|module|generator|discriminator)\w{0,20}\.(?:to|cuda|xpu)\(",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?:-{1,6}>)? ?(?P<line>\d{1,7})[: |\u2502]{1,4}")
_MOST_CHARS = 200
_MOST_LINES = 4000


def _numbered(text: str) -> tuple[str, int]:
    match = _NUMBER.match(text)
    if match is None:
        return text.strip(), 0
    return text[match.end() :].strip(), int(match["line"])


_ARGUMENT = re.compile(
    r"argument (?:#\d )?'?(?P<name>[a-z_]\w{0,40})'? in (?:method|call to) (?P<method>\w{1,80})|but got "
    r"(?P<got>[a-z_]\w{0,40}) is on|"
    r"argument #\d{1,2} '(?P<old>\w{1,40})'",
    re.IGNORECASE,
)
_DEVICE = re.compile(r"\b(?:cuda|xpu|mps|hpu|npu)(?::\d{1,3})?|\bcpu\b", re.IGNORECASE)
_PAIR = re.compile(
    r"input (?:type|tensor at) \(?(?P<input>[\w.:]{1,40})\)? and (?:weight type|bias type|parameter tensor "
    r"at) "
    r"\(?(?P<weight>[\w.:]{1,40})",
    re.IGNORECASE,
)


def what_is_apart(told: Told) -> dict[str, str]:
    """Find which tensor was left behind, as far as the step, the frames and the message tell."""
    first, second = _devices(told.text) or ("", "")
    pair, name = _PAIR.search(told.text), _argument(told.text)
    if pair is not None:
        behind = _behind(_place(pair["input"]), _place(pair["weight"])) or "unsure"
    else:
        got = _GOT.search(told.text)
        device = (second if got is None else got["device"]).partition(":")[0].lower()
        behind = _left_behind(name, device) if device else ""
    load, move = _disorder(told.pasted)
    types = [read_type(told.groups.get(key, "")) for key in ("a", "b")]
    return {
        "argument": name,
        "first": first,
        "second": second,
        "pair": "" if pair is None else "yes",
        "behind": behind,
        "in_optimizer": "yes" if _is_in_optimizer(told) else "",
        "order": f"Here the optimizer is loaded ({_where(load)}) before the model is moved ({_where(move)})."
        if load[0]
        else "",
        "swapped": "; ".join(escape_text(cut_text(line, 100)) for line, _ in (move, load)),
        "types_apart": "yes" if _are_apart(*types) else "",
    }


def _is_in_optimizer(told: Told | Context) -> bool:
    """Return whether an optimizer's step failed, or the text says only that a run was resumed."""
    step = told.scene.step
    resumed = not step and _RESUMING.search(told.pasted.flat[:_MOST_RESUMING]) is not None
    return step in _OPTIMIZER_STEPS or resumed


Line = tuple[str, int]
"""A line without its number, and the number; 0 where the text has none."""
_NO_LINE: Line = ("", 0)


def _disorder(pasted: Pasted) -> tuple[Line, Line]:
    """Find a line that loads an optimizer above the line that moves the model, in what a text shows."""
    load = _NO_LINE
    for text in pasted.lines[:_MOST_LINES]:
        line, number = _numbered(text[:_MOST_CHARS])
        if _LOAD.search(line):
            load = (line, number)
        elif _MOVE.search(line):
            return (load, (line, number))
    return _NO_LINE, _NO_LINE


def _where(line: Line) -> str:
    return f"line {line[1]}" if line[1] else escape_text(cut_text(line[0], 100))


def _left_behind(name: str, device: str) -> str:
    """Return whether input or model is on the CPU, by the argument that does not fit and its device."""
    if name in _INPUTS:
        return "input" if device == "cpu" else "model"
    if name in _OF_MODEL:
        return "model" if device == "cpu" else "input"
    return ""


def _behind(given: str, weight: str) -> str:
    """Return whether the input or the model is on the CPU, and the other one is not."""
    if "cpu" not in {given, weight} or given == weight or not (given and weight):
        return ""
    return "input" if given == "cpu" else "model"


def _argument(text: str) -> str:
    """Return the argument that a message names: `mat1`, `weight`, `index`."""
    match = _ARGUMENT.search(text)
    return "" if match is None else (match["name"] or match["got"] or match["old"]).lower()


_INPUTS = frozenset({"mat1", "input"})
_OF_MODEL = frozenset({"weight", "bias", "running_mean", "running_var"})


def _place(text: str) -> str:
    named = _DEVICE.match(text)
    return named[0].partition(":")[0].lower() if named is not None else read_type(text).place


def _devices(text: str) -> list[str]:
    """Return the two devices that a message names: of the first tensor, then of the one that differs."""
    tail = text.rpartition("found at least two devices")[2]
    return [] if tail == text else [found.lower() for found in _DEVICE.findall(tail)[:2]]


_GOT = re.compile(r"but got \w{1,40} is on (?P<device>[a-z]{1,8})", re.IGNORECASE)


# --- what of a file is apart --------------------------------------------------------------------------------

_OPTIMIZER_STEPS: frozenset[Step] = frozenset({"optimizer", "scaler", "load-optimizer"})
_OF_OPTIMIZER = ("step-off-accelerator", "step-on-accelerator", "optimizer-off-parameter-device")
_FINDINGS_OF_MODEL = ("loss-buffer-left-behind", "mixed-devices", "rng-off-cpu", "hidden-device")
_ELSEWHERE: dict[Step, str] = {
    "loss": "the targets were not moved, or the loss with its class weights was not",
    "forward": "the model or its input was not moved, or a tensor is made in forward() without device=",
    "script": "a device is a constant of the traced code",
    "clip": "a part of the model was not moved",
    "data": "the dataset puts together what it made and what it loaded",
}
_ANYWHERE = (
    "the batch was not moved (inputs = inputs.to(device)), a tensor is made in forward() without device=, "
    "or the optimizer was created or loaded before the model was moved"
)
_WORD = re.compile(r"[a-z_]\w{2,60}")


_RESUMING = re.compile(r"\bresum(?:e|es|ed|ing)\b|\boptimi[sz]er\b", re.IGNORECASE)
_MOST_RESUMING = 8 * 1024


def tie_apart(context: Context) -> Tied:
    """Look for tensors apart in the file; a file that lies on one device is not the cause."""
    step = context.scene.step
    in_optimizer = _is_in_optimizer(context) or "state_steps" in context.text
    ids = (
        _OF_OPTIMIZER
        if in_optimizer
        else _FINDINGS_OF_MODEL
        if step
        else (*_FINDINGS_OF_MODEL, *_OF_OPTIMIZER)
    )
    for id_ in ids:
        found = context.findings.get(id_)
        if found is not None and found.severity != "note":  # a note is of what breaks nothing by itself
            return of_finding(found, in_full=True)
    if in_optimizer:
        return _of_optimizer(context)
    return _of_code(context, _ELSEWHERE.get(step, _ANYWHERE))


def _of_code(context: Context, elsewhere: str) -> Tied:
    """Report that the code decides, and how it probably went wrong."""
    devices = sorted({tensor.device for tensor in context.checkpoint.tensors})
    if len(devices) < 2:
        where = f" is entirely on {devices[0]}" if devices else " holds no tensors"
        return Tied(fits="no", here=f"This file{where}, so it is not the cause. Probably {elsewhere}.")
    return Tied(
        fits="unknown",
        here=f"The tensors of this file are on {listed(devices)}, which does not decide: load_state_dict "
        "copies them to where the model is, and what torch keeps on the CPU is where it belongs. More "
        f"likely {elsewhere}.",
    )


def _of_optimizer(context: Context) -> Tied:
    """Name the state in this file that the optimizer's step met, and why its device does not decide."""
    slots = [row for row in context.checkpoint.tensors if row.slot is not None and row.slot != "step"]
    if not slots:
        here = (
            "This file holds no optimizer state: the optimizer got it from another file, or from your code."
        )
        return Tied(fits="no", here=here)
    named = _named(context, slots)
    devices = listed(sorted({row.device for row in named}))
    first = named[0]
    of = f" of {plain(first.parameter)}" if first.parameter else f" ({plain(first.path)})"
    more = f" and {format_count(len(named) - 1, 'more slot')}" if len(named) > 1 else ""
    return Tied(
        fits="unknown",
        here=f"This file holds the state: {plain(first.slot or '')}{of}{more}, saved on {devices}. That "
        "does not decide: optimizer.load_state_dict moves it to where each parameter is at that moment. "
        "The order in the code does: the optimizer was loaded before the model was moved, or its state was "
        "set by hand.",
        paths=[row.path for row in named],
    )


def _named(context: Context, slots: list[Tensor]) -> list[Tensor]:
    """Return the slots that the failing line of the optimizer names, all where it names none."""
    code = " ".join(frame.code for frame in context.pasted.frames[-2:] if frame.owner != "yours")
    words = {word.removeprefix("device_").removesuffix("s") for word in _WORD.findall(code)}
    return [row for row in slots if (row.slot or "").removesuffix("s") in words] or slots


# --- types and devices that differ --------------------------------------------------------------------------


def tie_parallel(context: Context) -> Tied:
    """Find the weights that are not on the first device of DataParallel."""
    home, stray = context.groups["home"], context.groups["stray"]
    paths = paths_on(context, [stray])
    if paths and stray != "cpu":
        return Tied(
            fits="yes",
            here=f"Tensors of this file were saved on {stray}; without map_location they are loaded there.",
            paths=paths,
            fix=Fix(rule=f"{stray}={home}"),
        )
    devices = devices_of(context, home.partition(":")[0])
    held = f"tensors on {stray}" if paths else f"nothing on {stray}"
    others = f"; its GPU tensors are on {listed(devices)}" if devices else ""
    here = f"This file holds {held}{others}. Your code put the model there."
    return Tied(fits="unknown" if paths else "no", here=here)


# --- dtypes -------------------------------------------------------------------------------------------------

_DTYPES = {
    "bfloat16": "bfloat16",
    "complexfloat": "complex64",
    "complexdouble": "complex128",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2",
    "unsignedchar": "uint8",
    "signedchar": "int8",
    "longint": "int64",
    "half": "float16",
    "float16": "float16",
    "float32": "float32",
    "float64": "float64",
    "float": "float32",
    "double": "float64",
    "int64": "int64",
    "int32": "int32",
    "uint8": "uint8",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "byte": "uint8",
    "char": "int8",
    "bool": "bool",
}
_DTYPE = re.compile("|".join(sorted(_DTYPES, key=len, reverse=True)))
_PLACES = ("cuda", "mps", "xpu", "hpu", "npu", "xla", "meta")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeName:
    """What a name of a type says.

    Attributes:
        place: The kind of device, such as `cuda`; empty where the name has none (`float`, `c10::Half`).
        dtype: The dtype as torch writes it, such as `float16`; empty where the name has none.
    """

    place: str
    dtype: str


def read_type(text: str) -> TypeName:
    """Read a name of a type: `torch.cuda.HalfTensor`, `CUDABFloat16Type`, `c10::Half`, `double`."""
    small = text.lower().replace(" ", "").strip("'\"()")
    named = _DTYPE.search(small.replace("tensor", "").replace("type", ""))
    place = next((place for place in _PLACES if place in small), "")
    if not place and ((small.startswith("torch.") and small.endswith("tensor")) or small.startswith("cpu")):
        place = "cpu"
    return TypeName(place=place, dtype=_DTYPES[named[0]] if named is not None else "")


def _are_apart(first: TypeName, second: TypeName) -> bool:
    return bool(first.place and second.place and first.place != second.place)


def two_dtypes(told: Told) -> dict[str, str]:
    """Read the two types of a message, and whether they differ in dtype and not in device."""
    groups = told.groups
    first, second = read_type(groups["a"]), read_type(groups["b"])
    both = {first.dtype, second.dtype}
    differ = "" not in both and len(both) > 1
    mixed = (differ or "" in both) and not _are_apart(first, second)
    return {
        "one": first.dtype,
        "other": second.dtype,
        "both": f"{first.dtype} {second.dtype}" if differ else "",
        "mixed": "yes" if mixed and groups.get("wanted") == groups.get("there") else "",
        "differ": "yes" if groups["a"] != groups["b"] else "",
    }


_MOST_DTYPES = 4
_WEIGHTS = frozenset({"parameter", "buffer"})


def tie_dtypes(context: Context) -> Tied:
    """Report the dtypes of the weights in this file, and whether they decide those of the model."""
    counts = Counter(tensor.dtype for tensor in context.checkpoint.tensors if tensor.role in _WEIGHTS)
    if not counts:
        return Tied(fits="unknown", here="This file holds no weights whose dtype could matter.")
    shown = listed([f"{name} ({format_count(n, 'tensor')})" for name, n in counts.most_common(_MOST_DTYPES)])
    here = f"The weights in this file are {shown}."
    if context.checkpoint.module_class is not None:
        return Tied(fits="yes", here=f"{here} It is a whole model, which keeps these dtypes.")
    here += " load_state_dict copies them into the dtypes that the model was built with"
    return Tied(fits="unknown", here=f"{here}, so the file alone does not decide it (unless assign=True).")


# --- moves between devices ----------------------------------------------------------------------------------


def tie_meta(context: Context) -> Tied:
    """Find tensors without data in this file."""
    paths = paths_on(context, ["meta"])
    if paths:
        here = (
            f"{format_count(len(paths), 'tensor')} of this file are on the meta device: it holds no data for "
            "them."
        )
        return Tied(fits="yes", here=here, paths=paths)
    return Tied(
        fits="no",
        here="No tensor of this file is on the meta device, they all have data: the model was built there "
        "and this file, or a part of it, was not loaded into it.",
    )


# --- shapes -------------------------------------------------------------------------------------------------


def tie_of_input(context: Context) -> Tied:
    """Find the weights of this file that have the shape which the message names."""
    said = tuple(int(part) for part in context.groups.get("shape", "").replace(" ", "").split(",") if part)
    if not said:
        return Tied(
            fits="unknown",
            here="This file's weights have the shapes that the model was built with; the input does not fit.",
        )
    wanted = {said, said[::-1]} if len(said) == 2 else {said}
    found = [tensor.path for tensor in context.checkpoint.tensors if tensor.shape in wanted]
    if not found:
        return Tied(fits="no", here=f"No tensor of this file has the shape {format_shape(said)}.")
    here = (
        f"{format_count(len(found), 'weight')} of this file {'has' if len(found) == 1 else 'have'} that "
        "shape."
    )
    return Tied(fits="unknown", here=f"{here} The input that they get does not fit.", paths=found)


def flat_shards(told: Told) -> dict[str, str]:
    """Find two sizes of flat shards: large, and one nearly a multiple of the other."""
    match = _TWO_SIZES.search(told.text)
    small, large = (0, 0) if match is None else sorted((int(match[1]), int(match[2])))
    times = round(large / small) if small >= _SHARD_ELEMENTS else 0
    return {"shards": "yes" if times > 1 and abs(large - times * small) <= times else ""}


_TWO_SIZES = re.compile(r"tensor a \((\d{1,15})\) must match the size of tensor b \((\d{1,15})\)")
_SHARD_ELEMENTS = 100_000


# --- optimizers and their states ----------------------------------------------------------------------------

_RESUME = Fix(style="resume")
_NO_OPTIMIZER = "This file holds no optimizer state: the error comes from another file."


def tie_groups(context: Context) -> Tied:
    """Report the groups of this file's optimizers, and what a model of this file would make."""
    optimizers = context.checkpoint.optimizers
    if not optimizers:
        return Tied(fits="no", here=_NO_OPTIMIZER)
    of_model = sum(
        1 for tensor in context.checkpoint.tensors if tensor.role == "parameter" and tensor.part_of is None
    )
    here = " ".join(_described(optimizer) for optimizer in optimizers[:4])
    if of_model:
        here += f" The model in the file has {format_count(of_model, 'parameter')}."
    here += " Yours has a different number."
    mismatch = context.findings.get("optimizer-mismatch")
    return Tied(fits="yes", here=here, paths=() if mismatch is None else mismatch.paths, fix=_RESUME)


def _described(optimizer: Optimizer) -> str:
    sizes = [f"{size:,}" for size in optimizer.groups]
    groups = format_count(len(sizes), "group")
    return f"{optimizer.path or 'The optimizer'} has {groups} of {listed(sizes) or 'no'} parameters."


def tie_initial_lr(context: Context) -> Tied:
    """Return whether the optimizers of this file carry the rate that a scheduler left in them."""
    if not context.checkpoint.optimizers:
        return Tied(fits="no", here=_NO_OPTIMIZER)
    if any(value.keys[-1:] == ("initial_lr",) for value in context.checkpoint.values):
        here = (
            "The optimizer in this file has initial_lr in its groups: load it before the scheduler is "
            "created."
        )
        return Tied(fits="yes", here=here, fix=_RESUME)
    here = "The optimizer in this file has no initial_lr in its groups: it was saved without a scheduler."
    return Tied(fits="yes", here=here, fix=_RESUME)


def tie_grouped(context: Context) -> Tied:
    """Look for step counters on another GPU, which load_state_dict leaves there, then for other state."""
    counters = context.findings.get("step-on-accelerator")
    if counters is not None and counters.severity != "note":
        return of_finding(counters, in_full=True)
    return _state_apart(context)


_state_apart = by_finding(
    "optimizer-off-parameter-device",
    "step-off-accelerator",
    no="In this file the optimizer state is on the same device as its parameters: the model was moved "
    "after the optimizer was loaded, or its dtype was changed.",
)


def tie_rng_sizes(context: Context) -> Tied:
    """Report the sizes of the random states in this file."""
    states = [tensor for tensor in context.checkpoint.tensors if tensor.role == "rng"]
    if not states:
        return Tied(fits="no", here="This file holds no random generator state in a tensor.")
    shown = listed([f"{tensor.path} ({tensor.nbytes:,} bytes)" for tensor in states])
    return Tied(fits="yes", here=f"This file holds {shown}.", paths=[tensor.path for tensor in states])


_MOST_SLOTS = 12


def tie_slots(context: Context) -> Tied:
    """Report which slots the optimizers of this file have."""
    if not context.checkpoint.optimizers:
        return Tied(
            fits="no",
            here="This file holds no optimizer state: the error comes from another file, or from the code.",
        )
    slots = sorted({tensor.slot for tensor in context.checkpoint.tensors if tensor.slot is not None})
    held = (
        f"with the slots {listed(slots[:_MOST_SLOTS])}"
        if slots
        else "without any slot: it was saved before the first step"
    )
    return Tied(fits="unknown", here=f"This file holds optimizer state {held}.", fix=_RESUME)
