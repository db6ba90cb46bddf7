"""Messages of what runs after the load: mixed devices and dtypes, shapes, optimizers and their states."""

from __future__ import annotations

import re
from collections import Counter

from inspector.diagnose.errors.explanation import Context, Said, Tied, Told
from inspector.diagnose.errors.paste import Pasted, Step
from inspector.diagnose.errors.ties import about_code, by_finding, devices_of, of_finding, paths_on
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Disorder:
    """Two lines in the wrong order.

    Attributes:
        load: The line that loads the optimizer, without its number.
        load_line: Its number; 0 where the text has none.
    """

    load: str
    move: str
    load_line: int
    move_line: int


def find_disorder(pasted: Pasted) -> Disorder | None:
    """Find a line that loads an optimizer above the line that moves the model, in what a text shows."""
    load: tuple[str, int] | None = None
    for text in pasted.lines[:_MOST_LINES]:
        line, number = _numbered(text[:_MOST_CHARS])
        if _LOAD.search(line):
            load = (line, number)
        elif _MOVE.search(line):
            if load is None:
                return None
            return Disorder(load=load[0], move=line, load_line=load[1], move_line=number)
    return None


def _numbered(text: str) -> tuple[str, int]:
    """Split a line into its code and the number before it."""
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
_MADE = re.compile(
    r"torch\.(?:zeros|ones|arange|rand\w*|tensor|full|eye|linspace|empty)\(|torch\.from_numpy\(|Variable\("
)

_OPTIMIZER = (
    "optimizer.step() met a parameter on one device and its state ({slots}) on another. load_state_dict of "
    "the optimizer moves the state to where each parameter is at that moment: the optimizer was loaded "
    "before the model was moved, or the state was put in without load_state_dict."
)
_OPTIMIZER_ADVICE = (
    "Move the model first, load the optimizer last: model.to(device); optimizer = ...; "
    "optimizer.load_state_dict(checkpoint['optimizer']). Where the order cannot be changed, move the state "
    "afterwards: for state in optimizer.state.values(): state.update((k, v.to(device)) for k, v in "
    "state.items() if torch.is_tensor(v))."
)
_SLOTS = "exp_avg, momentum_buffer"
_STEPS = Said(
    title="The optimizer's step counters are on the CPU, its parameters on the GPU",
    cause="Fused and capturable optimizers keep their step counters on the GPU, and these are on the CPU: "
    "the state was loaded with map_location='cpu' and not moved, because the saved groups did not have "
    "fused=True.",
    advice="Create the optimizer with the same fused= (or capturable=) as in the saved run, after "
    "model.to(device), and load its state last. Or move the counters: for state in "
    "optimizer.state.values(): state['step'] = state['step'].to(device).",
)
_LOSS_WEIGHT = Said(
    title="The weights of the loss are not on the model's device",
    cause="The class weights (weight=, pos_weight=) belong to the loss, and model.to(device) does not move "
    "the loss.",
    advice="Move the loss as well: criterion = criterion.to(device).",
)
_LOSS = Said(
    title="The loss got tensors on different devices",
    cause="The outputs of the model are on one device, and the targets, or the class weights of the loss, "
    "on another.",
    advice="Move the targets: targets = targets.to(device). A loss with weight= or pos_weight= moves like "
    "a model: criterion = criterion.to(device).",
)
_SCRIPT = Said(
    title="A traced model has a device built in",
    cause="torch.jit.trace writes the devices that it saw into the code as constants "
    "(device=torch.device('cpu') in the serialized code). map_location and .to() move the weights, not "
    "these constants; new tensors are made on the device of the tracing.",
    advice="Trace the model again on the device where it will run: torch.jit.trace(model.to(device), "
    "example.to(device)). torch.jit.script keeps x.device as it is written. Until then, run it on the "
    "device it was traced on.",
)
_MODEL_BEHIND = Said(
    title="The model is on the CPU, its input on the GPU",
    cause="The input was moved to the GPU, and the weights of this layer were not: model.to(device) is "
    "missing, was called on another object, or the layer is kept in a plain list or dict, where the model "
    "does not see it.",
    advice="Call model.to(device) after load_state_dict and before the first batch. Layers in a list "
    "belong into nn.ModuleList or nn.ModuleDict.",
)
_INPUT_BEHIND = Said(
    title="The input is on the CPU, the model on the GPU",
    cause="The model was moved to the GPU, and this input was not. torch never moves tensors by itself.",
    advice="Move each batch: inputs = inputs.to(device), before model(inputs). A tokenizer's output has "
    ".to(device), too. A tensor made in forward() needs device=x.device.",
)
_INDICES = Said(
    title="A tensor was indexed with indices on another device",
    cause="The indices or the mask are on another device than the tensor that they select from.",
    advice="Bring them together in that line: tensor[index.to(tensor.device)]. In older code of a "
    "framework, update the framework.",
)
_IDS = Said(
    title="The token ids are not on the device of the embedding",
    cause="An embedding is on one device, and the ids that it looks up are on another: the model was "
    "moved, the ids were not, or the other way round.",
    advice="Move what goes in: input_ids = input_ids.to(model.device) (for a tokenizer: inputs = "
    "tokenizer(text, return_tensors='pt').to(model.device)).",
)
_HIDDEN = Said(
    title="The hidden state is not on the device of the input",
    cause="The hidden state of an LSTM, GRU or RNN was made on another device than the input.",
    advice="Make it where the input is: torch.zeros(..., device=x.device), or leave it out: the layer then "
    "makes it.",
)
_TWO_GPUS = Said(
    title="One operation got tensors on two GPUs",
    cause="One tensor is on {devices[0]}, another on {devices[1]}: a model that is spread over GPUs "
    "(device_map='auto', DataParallel) got an input for another GPU, a tensor is made with a fixed .cuda() "
    "or device='cuda:0', or the file was loaded without map_location to the GPU that it was saved on.",
    advice="Use one GPU by number everywhere: load with map_location='cuda:0' and move model and batches "
    "there. In forward() make tensors with device=x.device instead of .cuda(). With device_map='auto', "
    "move the input to model.device and nothing by hand.",
)
_CLIP = Said(
    cause="The gradients are on several devices: the model is spread over GPUs, or part of it was never "
    "moved.",
    advice="Call model.to(device) before the optimizer is created. For a model that is split on purpose, "
    "update torch or clip each part by itself.",
)


def say_apart(told: Told) -> Said:
    """Explain which tensor was left behind, as far as the step, the frames and the message tell."""
    step, name = told.scene.step, _argument(told.text)
    if step == "script" or "torch/onnx" in told.pasted.flat.replace("\\", "/"):
        return _SCRIPT if step == "script" else _EXPORT
    if name == "state_steps":
        return _STEPS
    if step in _OPTIMIZER_STEPS or _is_resumed(told.pasted, step):
        return _in_optimizer(told)
    if step == "clip":
        return _CLIP
    if step == "loss" or "nll_loss" in told.text or "cross_entropy" in told.text:
        return _LOSS_WEIGHT if name in {"weight", "pos_weight"} else _LOSS
    return _in_forward(told, name)


def _in_optimizer(told: Told) -> Said:
    """Explain why the optimizer's state is apart, with two lines in the right order if the text has them."""
    wrong = find_disorder(told.pasted)
    cause = _OPTIMIZER.format(slots=_SLOTS)
    if wrong is None:
        return Said(title=_OPTIMIZER_TITLE, cause=cause, advice=_OPTIMIZER_ADVICE)
    load = f"line {wrong.load_line}" if wrong.load_line else escape_text(cut_text(wrong.load, 100))
    move = f"line {wrong.move_line}" if wrong.move_line else escape_text(cut_text(wrong.move, 100))
    lines = f"{escape_text(cut_text(wrong.move, 100))}; {escape_text(cut_text(wrong.load, 100))}"
    return Said(
        title=_OPTIMIZER_TITLE,
        cause=f"{cause} Here the optimizer is loaded ({load}) before the model is moved ({move}).",
        advice=f"Swap the two: {lines}.",
    )


_EXPORT = Said(
    title="The exporter to ONNX met constants on another device than the model",
    cause="While exporting, torch folds constants on the CPU, and the weights or inputs they meet are on the "
    "GPU. The model itself need not be wrong.",
    advice="Export on the CPU: model.cpu().eval() and inputs on the CPU; or pass do_constant_folding=False. "
    "Constants that forward() makes need device=x.device.",
)
_OPTIMIZER_TITLE = "Optimizer state and parameters are on different devices"


def _in_forward(told: Told, name: str) -> Said:
    """Explain which of input, weight, index and hidden state is apart."""
    text = told.text.lower()
    if "input and hidden" in text:
        return _HIDDEN
    if "indices should be" in text:
        return _INDICES
    pair = _PAIR.search(told.text)
    if pair is not None:
        return _of_pair(pair["input"], pair["weight"])
    devices = _devices(told.text)
    if len(devices) == 2 and "cpu" not in devices:
        return Said(
            title=_TWO_GPUS.title, cause=_TWO_GPUS.cause.format(devices=devices), advice=_TWO_GPUS.advice
        )
    if "embedding" in text or told.scene.layer in {"embedding", "sparse"} or "index_select" in text:
        return _IDS
    return _of_argument(told, name, _device_of_argument(told.text, devices))


def _of_argument(told: Told, name: str, device: str) -> Said:
    """Explain it by the argument that does not fit and its device, or from the user's line."""
    if name in _INPUTS and device:
        return _INPUT_BEHIND if device == "cpu" else _MODEL_BEHIND
    if name in _OF_MODEL and device:
        return _MODEL_BEHIND if device == "cpu" else _INPUT_BEHIND
    if name == "tensors" or _MADE.search(told.scene.code):
        return _MADE_THERE
    return Said()


_INPUTS = frozenset({"mat1", "input"})
_OF_MODEL = frozenset({"weight", "bias", "running_mean", "running_var"})
_MADE_THERE = Said(
    cause="Of the tensors that this line puts together, one was made on the CPU (torch.zeros, "
    "torch.arange, from_numpy and the like make CPU tensors) or never moved.",
    advice="Make it where the others are: device=x.device, or .to(x.device). Constants of a module belong "
    "into register_buffer, so that model.to(device) moves them.",
)


def _of_pair(given: str, weight: str) -> Said:
    """Explain who was left behind, by the types (or devices) of the input and of the weight."""
    first, second = _place(given), _place(weight)
    if first == "cpu" and second not in {"", "cpu"}:
        return _INPUT_BEHIND
    if second == "cpu" and first not in {"", "cpu"}:
        return _MODEL_BEHIND
    return Said()


def _place(text: str) -> str:
    named = _DEVICE.match(text)
    return named[0].partition(":")[0].lower() if named is not None else read_type(text).place


def _devices(text: str) -> list[str]:
    """Return the two devices that a message names: of the first tensor, then of the one that differs."""
    tail = text.rpartition("found at least two devices")[2]
    return [] if tail == text else [found.lower() for found in _DEVICE.findall(tail)[:2]]


def _device_of_argument(text: str, devices: list[str]) -> str:
    """Return the kind of device that the named argument is on; empty where the message does not say."""
    match = _GOT.search(text)
    device = match["device"] if match is not None else devices[1] if len(devices) == 2 else ""
    return device.partition(":")[0].lower()


_GOT = re.compile(r"but got \w{1,40} is on (?P<device>[a-z]{1,8})", re.IGNORECASE)


def _argument(text: str) -> str:
    """Return the argument that a message names: `mat1`, `weight`, `index`."""
    match = _ARGUMENT.search(text)
    return "" if match is None else (match["name"] or match["got"] or match["old"]).lower()


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


def _is_resumed(pasted: Pasted, step: Step) -> bool:
    """Return whether the text says that a run was resumed, or names its optimizer, and no step of it."""
    return not step and _RESUMING.search(pasted.flat[:_MOST_RESUMING]) is not None


_RESUMING = re.compile(r"\bresum(?:e|es|ed|ing)\b|\boptimi[sz]er\b", re.IGNORECASE)
_MOST_RESUMING = 8 * 1024


def tie_apart(context: Context) -> Tied:
    """Look for tensors apart in the file; a file that lies on one device is not the cause."""
    step = context.scene.step
    in_optimizer = step in _OPTIMIZER_STEPS or "state_steps" in context.text
    in_optimizer = in_optimizer or _is_resumed(context.pasted, step)
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


def when_types_apart(told: Told) -> bool:
    """Return whether the types that a message names are on different devices, or it names none."""
    pair = [told.groups.get(key) or told.groups.get(f"{key}2", "") for key in ("a", "b")]
    return not all(pair) or are_apart(read_type(pair[0]), read_type(pair[1]))


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


def are_apart(first: TypeName, second: TypeName) -> bool:
    """Return whether two types are on different kinds of devices."""
    return bool(first.place and second.place and first.place != second.place)


def differ(first: TypeName, second: TypeName) -> bool:
    """Return whether two types differ in their dtype."""
    return bool(first.dtype and second.dtype and first.dtype != second.dtype)


_MOST_DTYPES = 4
_FIRST = ("a", "a2", "a3", "a4", "a5", "a6", "a7", "a8")
_SECOND = ("b", "b2", "b3", "b4", "b5", "b6", "b7", "b8")
_INTEGERS = frozenset({"int64", "int32", "int16", "uint8", "int8", "bool"})
_LOW = frozenset({"float16", "bfloat16"})
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


def _is_dtype_mix(told: Told) -> bool:
    """Return whether the two types of a message differ in dtype and not in device."""
    first, second = read_type(_first(told)), read_type(_second(told))
    return not are_apart(first, second) and (differ(first, second) or not (first.dtype and second.dtype))


def _first(told: Told) -> str:
    return next((told.groups[key] for key in _FIRST if told.groups.get(key)), "")


def _second(told: Told) -> str:
    return next((told.groups[key] for key in _SECOND if told.groups.get(key)), "")


def say_mixed(told: Told) -> Said:
    """Explain which dtype met which, and the shortest way to make them one."""
    first, second = read_type(_first(told)).dtype, read_type(_second(told)).dtype
    if told.scene.step in {"optimizer", "scaler"}:
        return _IN_OPTIMIZER
    return Said() if not first or not second or first == second else _of_dtypes(first, second)


def _of_dtypes(first: str, second: str) -> Said:
    """Explain what to convert where these two dtypes met."""
    cause = (
        f"One operation got tensors of {first} and of {second}. Both may be on the same device: this is "
        "about precision."
    )
    both = {first, second}
    if "int64" in both and not both & _LOW:
        return Said(cause=cause, advice=_LONG)
    if "float64" in both and "float32" in both:
        return Said(cause=f"{cause} {_DOUBLE}", advice=_TO_FLOAT)
    if both & _INTEGERS:
        return Said(cause=cause, advice=_FROM_INTEGERS)
    low = next(iter(sorted(both & _LOW)), "")
    return Said(cause=f"{cause} {_HALF}", advice=_TO_LOW.format(low=low)) if low else Said(cause=cause)


_IN_OPTIMIZER = Said(
    cause="The optimizer's state and the parameters have different dtypes: the model was converted "
    "(.half(), .float(), .bfloat16()) after the optimizer had its state, or state of another dtype was put "
    "in by hand.",
    advice="Convert the model first, then create the optimizer, and call optimizer.load_state_dict last: "
    "it casts the state to the dtype of each parameter.",
)
_DOUBLE = "NumPy arrays and Python floats become float64 by way of NumPy, while weights are float32."
_TO_FLOAT = "Convert what goes in: inputs = inputs.float() (targets.float() for a loss). Or model.double()."
_HALF = "A model in half precision (.half(), torch_dtype=, or a layer left in float32) got the other one."
_TO_LOW = (
    "Make them one: inputs = inputs.to(next(model.parameters()).dtype), or model.float() to compute in "
    "float32. With a model whose layers differ, run it under torch.autocast(device_type, dtype=torch.{low})."
)
_LONG = (
    "Class labels for cross_entropy and indices (embedding, gather, index_select) must be int64: "
    "labels.long(). Inputs of layers and targets of mse_loss or BCE must be floating point: x.float()."
)
_FROM_INTEGERS = (
    "Convert the integers before the model: images.float() / 255 for pictures, mask.bool() for masks, "
    "labels.long() for class labels."
)


def say_kernel(told: Told) -> Said:
    """Explain why there is no code for this dtype: by the dtype, and by the name of the kernel."""
    kernel, dtype = told.groups["kernel"].lower(), told.groups["dtype"].lower()
    if "unscale" in kernel:
        return Said(
            title="The gradient scaler does not work with bfloat16",
            cause="torch's GradScaler is for float16; with bfloat16 nothing needs to be scaled.",
            advice="Leave the GradScaler out (enabled=False) where bfloat16 is used.",
        )
    if "float8" in dtype:
        return Said(
            cause=_FLOAT8, advice="Convert before computing: tensor.to(torch.bfloat16), or model.float()."
        )
    if dtype in {"half", "bfloat16"}:
        return Said() if "cuda" not in kernel else Said(cause=_OLD_CUDA, advice=_OLD_CUDA_ADVICE)
    if "nll" in kernel or "cross_entropy" in kernel:
        return Said(
            title="Class labels must be int64",
            cause="nll_loss and cross_entropy take class labels as int64; these labels are of another dtype.",
            advice="labels = labels.long(). For targets that are probabilities, pass floats of shape (N, C).",
        )
    if dtype in {"long", "int", "short", "byte", "char", "bool"}:
        return Said(
            title="An operation for floating point got integers",
            cause="The operation is defined for floating point, and the tensor holds integers.",
            advice="Convert it first: x.float(). Pictures are read as uint8: images.float() / 255.",
        )
    return Said(
        title="This operation does not exist for this dtype and device",
        cause="torch has no code for the operation with this dtype on the device that the tensors are on.",
        advice="Convert the tensor to a dtype that is supported, such as float32, or run it on another "
        "device.",
    )


_FLOAT8 = "float8 is a format for storing; most operations are not defined for it."
_OLD_CUDA = "This version of torch has no CUDA code for the operation in half precision."
_OLD_CUDA_ADVICE = (
    "Update torch. Or convert for this one operation: tensor.float(), and back afterwards; or load the "
    "model in float32."
)


def when_dtype_mix(told: Told) -> bool:
    """Return whether two types differ in dtype and not in device."""
    return _is_dtype_mix(told) and told.groups["device"] == told.groups["device2"]


def when_mps_graph_dtypes(told: Told) -> bool:
    """Return whether the two types that are named differ."""
    return not told.groups["a"] or told.groups["a"] != told.groups["b"]


# --- moves between devices ----------------------------------------------------------------------------------

tie_code = about_code(
    "Where the tensors of this file were saved does not decide it: the code that runs does."
)


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


def say_meta(told: Told) -> Said:
    """Explain who built the model on the meta device."""
    text = told.text.lower()
    if "no-op" in text:
        return Said(
            cause="The model was built on the meta device, and load_state_dict copies into its tensors, "
            "which have no place for data: nothing is loaded.",
            advice="Pass assign=True: model.load_state_dict(state_dict, assign=True), which puts the "
            "loaded tensors in place (torch 2.1). Or model.to_empty(device='cpu') before load_state_dict.",
        )
    if (
        "not on the expected device meta" in text
        or "we need a 'value'" in text
        or "on the meta device" in text
    ):
        return Said(
            cause="accelerate built the model on the meta device and found no weights for this tensor: its "
            "name is not in the checkpoint, or it was offloaded and the hooks that bring it back are gone.",
            advice="Compare the names in the checkpoint with those of the model. Load without device_map "
            "(low_cpu_mem_usage=False) to see which are missing, and move it yourself.",
        )
    return Said()


def say_to_numpy(told: Told) -> Said:
    """Explain who called NumPy: in data loading the answer is another."""
    if "grad" in told.groups.get("grad", "").lower():
        return Said(
            title="A tensor with gradients was converted to NumPy",
            cause="The tensor takes part in the computation of gradients, which NumPy knows nothing of.",
            advice="tensor.detach().cpu().numpy(), or run the forward pass under torch.no_grad().",
        )
    if "bfloat16" in told.text.lower():
        return Said(
            title="NumPy has no bfloat16",
            cause="The tensor is bfloat16, a dtype that NumPy does not have.",
            advice="Convert it first: tensor.float().cpu().numpy().",
        )
    return Said()


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


def _are_shards(text: str) -> bool:
    """Return whether two sizes are those of flat shards: large, and one nearly a multiple of the other."""
    match = _TWO_SIZES.search(text)
    if match is None:
        return False
    small, large = sorted((int(match[1]), int(match[2])))
    times = round(large / small) if small >= _SHARD_ELEMENTS else 0
    return times > 1 and abs(large - times * small) <= times


_TWO_SIZES = re.compile(r"tensor a \((\d{1,15})\) must match the size of tensor b \((\d{1,15})\)")
_SHARD_ELEMENTS = 100_000


def say_sizes(told: Told) -> Said:
    """Explain where two sizes met: in an optimizer they are its state and the parameters."""
    resumed = not told.scene.has_frames and _RESUMED.search(told.text) is not None
    if _are_shards(told.text):
        return Said(
            title="Optimizer state was cut for another number of processes",
            cause="Two flat tensors of many elements meet, and one is about so many times as long as the "
            "other: FSDP and DeepSpeed's ZeRO cut parameters and optimizer state evenly over the processes, "
            "and the checkpoint was written by another number of them.",
            advice="Resume with the same number of GPUs, or from a checkpoint in one piece: a full state "
            "dict of FSDP (FullStateDictConfig), zero_to_fp32.py or ds_to_universal for DeepSpeed. Or skip "
            "the optimizer's state.",
        )
    if told.scene.step not in {"optimizer", "scaler", "load-optimizer"} and not resumed:
        return Said()
    return Said(
        title="Optimizer state belongs to parameters of other shapes",
        cause="The state of the optimizer is stored by the order of the parameters, and it was loaded for "
        "others: the model has changed, or its parameters come in another order than when it was saved. "
        "load_state_dict checks only their number.",
        advice="Build model and optimizer exactly as in the saved run, with the parameters in the same "
        "order. Or skip the optimizer's state.",
    )


_RESUMED = re.compile(r"\b(?:resum|load)\w{0,6} (?:\w{1,20} ){0,3}optimizer", re.IGNORECASE)


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
_OF_OPTIMIZERS = frozenset(
    {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "square_avg", "acc_delta"}
)


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


def when_in_optimizer(told: Told) -> bool:
    """Return whether a missing key was looked up by an optimizer."""
    step = told.scene.step
    if told.groups["key"].lower() in _OF_OPTIMIZERS:
        return True
    return step in {"optimizer", "scaler", "load-optimizer"} or not told.scene.has_frames


_ADDRESS_DIGITS = 12  # torch before 1.5 numbered parameters by their address


tie_step_on_gpu = by_finding(
    "step-on-accelerator",
    no=(
        "The step counters in this file are on the CPU, or plain numbers: they were moved while "
        "loading, by map_location or by load_state_dict of torch 1.12.0."
    ),
)


tie_step_on_cpu = by_finding(
    "optimizer-capturable",
    "step-off-accelerator",
    no=(
        "The step counters of this file do not decide that: load_state_dict moves those of a "
        "capturable optimizer to their parameters. The parameters themselves were on the CPU, or "
        "moved afterwards."
    ),
)


tie_rng_device = by_finding(
    "rng-off-cpu",
    no=(
        "The random states in this file are on the CPU, or there are none: map_location moved them "
        "while loading, or the error comes from another file."
    ),
)


def when_optimizer_index(told: Told) -> bool:
    """Return whether a missing number was looked up in an optimizer's state."""
    return (
        told.scene.step in {"optimizer", "scaler", "load-optimizer"}
        or len(told.groups["key"]) >= _ADDRESS_DIGITS
    )


def when_optimizer_other(told: Told) -> bool:
    """Return whether a missing key was looked up in an optimizer's state."""
    return told.scene.step == "load-optimizer" or "param_groups" in told.text
