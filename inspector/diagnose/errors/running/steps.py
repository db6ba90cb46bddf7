"""What tensors on two devices mean in each step of a program: who was left behind, and what helps."""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import Said, Told
from inspector.diagnose.errors.reading.pasted import Pasted
from inspector.diagnose.errors.running.dtypes import read_type
from inspector.records import dataclass
from inspector.units import cut_text, escape_text

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
        move: The line below it that moves the model.
        load_line: Its number; 0 where the text has none.
        move_line: The same of the other.
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
    if step in {"optimizer", "scaler", "load-optimizer"}:
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
