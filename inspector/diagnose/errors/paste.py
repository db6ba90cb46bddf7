"""A pasted error as people paste it: a traceback with its noise, or a few words out of one.

Terminals add colors and break lines, notebooks add arrows and line numbers, loggers and launchers put a time
or a rank before each line, word processors turn quotes, web pages turn them into entities. All that goes; the
words stay. The text is not trusted: it is cut first, and no pattern here can be slow on it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from inspector.records import dataclass, replace
from inspector.units import cut_text

# --- frames -------------------------------------------------------------------------------------------------

Owner = Literal["yours", "torch", "framework", "python"]

_INSTALLED = re.compile(r".*/(?:site|dist)-packages/(?:[^/]{1,200}\.egg/)?(?P<package>[^/]{1,200})")
# What stands below torch's folder, in a build from source or a path that was shortened.
_TORCH = re.compile(
    r"(?:.*/)?(?P<package>torch)/(?:nn|optim|utils|cuda|autograd|distributed|jit|amp|mps|xpu|_dynamo|_inductor|"
    r"_functorch|fx|package|hub\.py|serialization\.py|storage\.py|functional\.py|_utils\.py|_tensor\.py|"
    r"tensor\.py|_ops\.py|random\.py|multiprocessing|onnx|export|quantization|ao|nested|sparse|_refs|_prims|"
    r"_weights_only_unpickler\.py|_decomp|_subclasses)(?:/|$)"
)
_FRAMEWORKS = (
    "accelerate|transformers|pytorch_lightning|lightning|lightning_fabric|fairseq|ultralytics|mmcv|mmengine|"
    "mmdet|detectron2|fastai|diffusers|peft|deepspeed|apex|ignite|timm|safetensors|bitsandbytes|torchvision|"
    "torchaudio|monai|sentence_transformers|flash_attn|xformers|huggingface_hub|catalyst|allennlp|espnet2?|"
    "speechbrain|stable_baselines3|torch_geometric|torchmetrics|numpy|joblib"
)
_FRAMEWORK = re.compile(rf"(?:.*/)?(?P<package>{_FRAMEWORKS})/(?:[^/]{{1,80}}/){{0,8}}[^/]{{1,80}}\.py$")
_OWN = re.compile(
    r"<frozen |<string>$|.*/lib/python\d(?:\.\d{1,2})?/|.*/(?:python|anaconda|miniconda|envs)[^/]{0,40}/lib/|"
    r"(?:.*/)?(?:runpy|pickle|threading|zipfile|_pickle)\.py$|(?:.*/)?multiprocessing/",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """What a path says.

    Attributes:
        owner: Whose code it is; `python` is Python's own.
        package: The package that it belongs to, such as `torch`; empty for the user's own code.
        place: The path from the package on, such as `torch/optim/adam.py`; else its last two steps.
    """

    owner: Owner
    package: str
    place: str


def locate(path: str) -> Located:
    """Return whose code a file is, by its path."""
    steps = path.replace("\\", "/")
    match = _INSTALLED.match(steps) or _TORCH.match(steps) or _FRAMEWORK.match(steps)
    if match is not None:
        package = match["package"]
        owner: Owner = "torch" if package == "torch" else "framework"
        return Located(
            owner=owner, package=package.removesuffix(".py"), place=steps[match.start("package") :]
        )
    last = "/".join(steps.split("/")[-2:])
    return Located(owner="python" if _OWN.match(steps) else "yours", package="", place=last)


_MOST_CODE = 300
_MOST_FUNCTION = 120
_PATH = r'(?P<path>[^"]{1,400})'
_CODE_PATH = (
    r"(?P<path>(?:(?:[A-Za-z]:)?[~/\\.][^\"':*?<>|]{0,300}|[\w-]{1,80}(?:[/\\][^\s\"':*?<>|]{1,300})?)"
    r"\.(?:py|pyx|ipynb))"
)
_FUNCTION = r"(?P<function>[\w.<>$]{1,120})"
_LINE = r"(?P<line>\d{1,7})"
_HEADS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf'File "{_PATH}", line {_LINE}(?:, in {_FUNCTION})?(?P<code> \S.*)?',
        rf"File {_CODE_PATH}:{_LINE}(?:, in {_FUNCTION})?(?:\(.*)?$",
        rf"(?P<path>Cell) ?In ?\[\d{{1,6}}\], line {_LINE}(?:, in {_FUNCTION})?(?:\(.*)?$",
        rf"(?P<path>Input) In \[\d{{1,6}}\], in <cell line: {_LINE}>\(.*$",
        (
            rf"(?P<path><ipython-input-[\w-]{{1,60}}>|/tmp/ipykernel_\d{{1,9}}/\d{{1,20}}\.py) in "
            rf"{_FUNCTION}(?:\(.*)?$"
        ),
        rf"{_CODE_PATH} in {_FUNCTION}\(.*$",
        rf"{_CODE_PATH}:{_LINE}: in {_FUNCTION}$",
        rf"{_CODE_PATH}:{_LINE} in {_FUNCTION}$",
        rf"{_CODE_PATH}:{_LINE}: [A-Za-z_.]{{0,60}}(?:Error|Exception)$",
    )
)
_MAYBE = re.compile(r"File |Cell|Input In|<ipython|.{1,400}\.(?:py|ipynb)", re.IGNORECASE)
_ARROW = re.compile(r"-{1,6}> ?(?P<line>\d{1,7}) ?(?P<code>\S.*)?")
_NUMBERED = re.compile(r"(?P<line>\d{1,7}) [|\u2502](?P<code>[ |\u2502].*)")
_MARKS = re.compile(r"[\^~ ]+$|~*\^+|~+ <-+ HERE")
_CUT_HEAD = re.compile(r'File "[^"]{0,400}$|File "[^"]{0,400}", ?l?i?n?e? ?\d{0,7}$')
_CHANGE = "\u2502| "


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One frame; what the text does not say is empty, or 0."""

    path: str
    line: int
    function: str
    code: str
    owner: Owner
    package: str
    place: str


def is_cut_head(line: str) -> bool:
    """Return whether a line begins a frame and was broken by a terminal."""
    return _CUT_HEAD.match(line) is not None


def read_head(line: str) -> Frame | None:
    """Read the first line of a frame; None for any other line."""
    if _MAYBE.match(line) is None:
        return None
    for pattern in _HEADS:
        match = pattern.match(line)
        if match is not None:
            parts = match.groupdict()
            path = parts["path"].strip()
            located = locate(path)
            return Frame(
                path=path,
                line=int(parts.get("line") or 0),
                function=(parts.get("function") or "")[:_MOST_FUNCTION],
                code=cut_text((parts.get("code") or "").strip(), _MOST_CODE),
                owner=located.owner,
                package=located.package,
                place=located.place,
            )
    return None


def finish(head: Frame, below: Sequence[str]) -> Frame:
    """Give a frame its code out of the few lines below its first one, up to the next frame."""
    line, code = _code(head, below)
    return replace(head, line=line, code=head.code or cut_text(code, _MOST_CODE))


def _code(head: Frame, below: Sequence[str]) -> tuple[int, str]:
    """Find the line that ran: the one that an arrow or the frame's number points at, else the first."""
    plain = ""
    for text in below:
        arrow = _ARROW.match(text)
        if arrow is not None:
            return head.line or int(arrow["line"]), (arrow["code"] or "").strip(_CHANGE)
        numbered = _NUMBERED.match(text)
        if numbered is not None:
            if int(numbered["line"]) == head.line:
                return head.line, numbered["code"].strip(_CHANGE)
        elif not plain and _MARKS.match(text) is None:
            plain = text
    return head.line, plain


# --- the text -----------------------------------------------------------------------------------------------

MOST_CHARS = 256 * 1024
"""What is looked at of a text; the middle of a longer one is left out, as errors stand at either end."""
_HEAD_CHARS = 64 * 1024

_ESCAPES = re.compile(r"\x1b\][^\x07\x1b]*\x07?|\x1b\[[0-9;:?]*[ -/]?[@-~]|\x1b.|\[[0-9;]{1,12}m")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`\uff07", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\uff02", '"'),
        **dict.fromkeys("\u00a0\u2007\u202f\u3000\t\f\v", " "),
        **dict.fromkeys("\u2028\u2029\x85\r", "\n"),
        "\uff1a": ":",
        "\uff0c": ",",
        "\uff0e": ".",
        "\uff01": "!",
        "\uff1b": ";",
        "\uff1d": "=",
        "\uff3f": "_",
        "\uff08": "(",
        "\uff09": ")",
    }
)
_ENTITIES = (("&#39;", "'"), ("&apos;", "'"), ("&quot;", '"'), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
# What stands before a line: frames of boxes, quotes of mails, ranks and process numbers, pytest's E, times.
_BEFORE = re.compile(
    r"(?:[\s|>\u2500-\u257f\u276f\u2771]+|\[(?:rank ?|default)?\d{1,6}\]:|\[[a-z]{1,20}\d{1,6}\]:|"
    r"\([A-Za-z_ ]{0,40}pid=\d{1,10}[^)]{0,60}\)|E(?=\s{2,}))"
)
_TIME = re.compile(
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?Z?\]?(?:\s?[-:]{0,2}\s?"
    r"(?:[A-Za-z_.]{1,40}\s[-:]{1,2}\s)?(?:ERROR|CRITICAL|WARNING|INFO|DEBUG)\s?[-:]{0,2})?"
)
# What loggers, debuggers, web interfaces and C++ put before the name of an error.
_LEAD = re.compile(
    r"(?:(?:ERROR|CRITICAL|FATAL|Error|Exception has occurred|Exception occurred|Uncaught exception|"
    r"!{3} ?Exception during processing ?!{3})(?:: ?(?:root: ?)?| - | )|what\(\): )(?=\S)"
)
_ERROR_LINE = re.compile(
    r"(?:[A-Za-z_]\w{0,60}\.){0,8}(?:[A-Za-z_]\w{0,60})?(?:Error|Exception|Interrupt|BadZipFile|SystemExit|"
    r"StopIteration)(?: ?:|\Z| in \S)"
)
_OTHER_LINE = re.compile(
    r"(?:Original )?Traceback|During handling of the above|The above exception was|File \"|\[?File |-{3,}> "
    r"?\d|"
    r"^\d+ |frame #\d"
)
# Paths of Windows; in a `repr` their backslashes are doubled, and what follows a single one is an escape.
_WINDOWS = re.compile(
    r'(?:\b[A-Za-z]:|~|(?<![.\w])\.{1,2})(?:\\[^"\\\n:*?<>|]{1,100}){1,40}|(?<=File ")[^"\n\\]{0,100}'
    r'(?:\\[^"\\\n]{1,100}){1,40}(?=")'
)
_LINKED = re.compile(r"\[(?P<shown>(?:line )?\d{1,7})\]\((?:https?|vscode)[^)\s]{1,600}\)")
_INSIDE_A_LINE = re.compile(r'(?<=\S) +(?=File "[^"\n]{1,400}", line \d)')
_WARNING = "Warning: "
_MOST_PREFIXES = 4
_MOST_FRAMES = 300
_MOST_BELOW = 14
_MOST_WARNINGS = 50
_MOST_JOINED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """One error of a text."""

    text: str
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pasted:
    """A text without its noise.

    Attributes:
        lines: Its lines, without what stood before and behind them; none is empty.
        raised: Each error in it, the last first: that is the one that ended the program.
    """

    lines: tuple[str, ...]
    raised: tuple[Raised, ...] = ()
    frames: tuple[Frame, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[str, ...]:
        """What each error says, the last first."""
        return tuple(one.text for one in self.raised)

    @property
    def flat(self) -> str:
        """All of it in one line."""
        return " ".join(self.lines)

    @property
    def squeezed(self) -> str:
        """All of it without white space, which undoes line breaks in the middle of words."""
        return squeeze(self.flat)


def squeeze(text: str) -> str:
    """Take out all spaces."""
    return text.replace(" ", "")


def read_pasted(text: str) -> Pasted:
    """Clean a pasted text and take it apart."""
    lines = _rejoined([line for raw in _clean(text).split("\n") if (line := _bare(raw))])
    heads = {place: head for place, line in enumerate(lines) if (head := read_head(line)) is not None}
    frames = _frames(lines, heads)
    warnings = [line.partition(_WARNING)[2] for line in lines if _WARNING in line]
    return Pasted(
        lines=tuple(lines),
        raised=tuple(_raised(lines, frames))[::-1],
        frames=tuple(frames.values()),
        warnings=tuple(warnings[-_MOST_WARNINGS:]),
    )


_CALLED = re.compile(r"\b(\w{1,40}Error)\(('[^'\n]{0,400}'),?\)")  # how `repr` writes an error


def _clean(text: str) -> str:
    if len(text) > MOST_CHARS:
        text = f"{text[:_HEAD_CHARS]}\n{text[_HEAD_CHARS - MOST_CHARS :]}"
    text = _INVISIBLE.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n"))).translate(_PLAIN)
    text = _WINDOWS.sub(lambda match: match[0].replace("\\", "/"), text)
    # A message in a `repr` or in JSON has its line breaks spelled out.
    text = text.replace("\\r\\n", "\n").replace("\\n", "\n").replace("\\t", " ")
    text = text.replace("\\'", "'").replace('\\"', '"')
    text = _CALLED.sub(r"\1: \2", text)
    for entity, char in _ENTITIES:
        text = text.replace(entity, char)
    return _INSIDE_A_LINE.sub("\n", _LINKED.sub(r"\g<shown>", text))


def _bare(line: str) -> str:
    """Return a line without frames and prefixes, its white space as single spaces."""
    for _ in range(_MOST_PREFIXES):
        match = _BEFORE.match(line) or _TIME.match(line)
        if match is None:
            break
        line = line[match.end() :]
    return " ".join(line.rstrip(" |\u2502\u2503").split())


def _rejoined(lines: list[str]) -> list[str]:
    """Put first lines of frames together again that a terminal broke, also within words."""
    whole: list[str] = []
    place = 0
    while place < len(lines):
        line, taken = lines[place], 1
        if is_cut_head(line) and read_head(line) is None:
            line, taken = _joined(lines[place : place + _MOST_JOINED + 1])
        whole.append(line)
        place += taken
    return whole


def _joined(lines: list[str]) -> tuple[str, int]:
    """Return the first line with as many of the next as make it a frame, and how many it took."""
    for taken in range(2, len(lines) + 1):
        for between in ("", " "):
            line = between.join(lines[:taken])
            if read_head(line) is not None:
                return line, taken
    return lines[0], 1


def _frames(lines: list[str], heads: Mapping[int, Frame]) -> dict[int, Frame]:
    """Read the frames, by the place of their first line; of too many those at either end."""
    places = list(heads)
    if len(places) > _MOST_FRAMES:
        places = places[: _MOST_FRAMES // 3] + places[-(_MOST_FRAMES - _MOST_FRAMES // 3) :]
    return {place: finish(heads[place], _below(lines, heads, place)) for place in places}


def _below(lines: list[str], heads: Mapping[int, Frame], place: int) -> list[str]:
    """Return the few lines below the first line of a frame, up to what cannot be its code."""
    found = []
    for at in range(place + 1, min(place + 1 + _MOST_BELOW, len(lines))):
        if at in heads or _ERROR_LINE.match(lines[at]) or lines[at].startswith("Traceback"):
            break
        found.append(lines[at])
    return found


def _raised(lines: list[str], frames: Mapping[int, Frame]) -> list[Raised]:
    """Read each error: its line, those below it up to the next traceback, and the frames above it."""
    errors: list[Raised] = []
    message: list[str] = []
    above: list[Frame] = []

    def close() -> None:
        nonlocal above
        if message:
            errors.append(Raised(text=" ".join(message), frames=tuple(above)))
            above = []
        message.clear()

    for place, line in enumerate(lines):
        said = _LEAD.sub("", line, count=1) if _LEAD.match(line) else line
        if _ERROR_LINE.match(said) or (said is not line and line.startswith("what()")):
            close()
            message.append(said)
        elif place in frames or _OTHER_LINE.match(line) or _WARNING in line:
            close()
        elif message:
            message.append(line)
        if place in frames:
            above.append(frames[place])
    close()
    return errors


# --- what the program was doing -----------------------------------------------------------------------------

Step = Literal[
    "",
    "load",
    "nested-load",
    "script-load",
    "save",
    "load-weights",
    "load-optimizer",
    "load-scheduler",
    "optimizer",
    "scheduler",
    "scaler",
    "clip",
    "loss",
    "forward",
    "script",
    "backward",
    "data",
    "pin",
    "move",
    "parallel",
    "distributed",
    "wrap",
]
"""A step of a program. `nested-load` is a tensor inside another pickle, `script` code of TorchScript, `wrap`
the making of DistributedDataParallel or the like. Empty where the text does not tell."""

_LOSSES = (
    "cross_entropy|nll_loss|nll_loss2d|binary_cross_entropy|binary_cross_entropy_with_logits|"
    "mse_loss|l1_loss|smooth_l1_loss|huber_loss|kl_div|ctc_loss|triplet_margin_loss|"
    "cosine_embedding_loss|margin_ranking_loss|multi_margin_loss|multilabel_margin_loss|"
    "multilabel_soft_margin_loss|gaussian_nll_loss|poisson_nll_loss|soft_margin_loss|"
    "hinge_embedding_loss"
)
# Asked of `place:function`, from the innermost frame outwards; the first that knows one counts.
_PLACES_TEXTS: tuple[tuple[str, Step], ...] = (
    (r"torch/storage\.py:_load_from_bytes", "nested-load"),
    (r"torch/(?:serialization|storage)\.py:(?:save|_save|_legacy_save|__reduce__|persistent_id)", "save"),
    (r"torch/jit/_serialization\.py:load|torch/jit/__init__\.py:load", "script-load"),
    (r"torch/(?:serialization|_weights_only_unpickler|hub)\.py:", "load"),
    (r"safetensors/torch\.py:(?:save|save_file|save_model|_flatten|_tobytes)", "save"),
    (r"safetensors/torch\.py:", "load"),
    (r"torch/optim/lr_scheduler\.py:(?:load_state_dict)", "load-scheduler"),
    (r"torch/optim/lr_scheduler\.py:(?!wrapper)", "scheduler"),
    (
        r"torch/optim/[\w/]{1,60}\.py:(?:load_state_dict|__setstate__|_load_state_dict|_process_value)",
        "load-optimizer",
    ),
    (
        (
            r"torch/optim/[\w/]{1,60}\.py:(?:step|_step|_?(?:single|multi)_tensor_\w+|_fused_\w+|\w*adam\w*|"
            r"sgd|rmsprop|"
            r"adagrad|adadelta|adamax|asgd|rprop|update)"
        ),
        "optimizer",
    ),
    (
        (
            r"(?:apex/optimizers|bitsandbytes/optim|transformers/optimization\.py|deepspeed/ops/adam)[\w/.]*:"
            r"(?:step|update_step)"
        ),
        "optimizer",
    ),
    (r"torch/(?:cuda/)?amp/grad_scaler\.py:", "scaler"),
    # Optimizers of other packages, and of one's own.
    (
        (
            r"(?:.{0,300}[/\\])?[\w.-]{0,40}optim[\w.-]{0,40}(?:[/\\][\w.-]{1,60}?)?\.py:"
            r"(?:step|_step|update_step|update_fn|update)$"
        ),
        "optimizer",
    ),
    (r"torch/nn/utils/clip_grad\.py:", "clip"),
    (r"torch/utils/data/_utils/pin_memory\.py:", "pin"),
    (r"torch/utils/data/", "data"),
    (r"torch/nn/modules/loss\.py:|torch/nn/functional\.py:(?:" + _LOSSES + r")$", "loss"),
    (
        r"torch/(?:autograd/(?:__init__|graph)|_?tensor)\.py:(?:backward|grad|_engine_run_backward)",
        "backward",
    ),
    (r"torch/nn/modules/module\.py:(?:load_state_dict|load|_load_from_state_dict)", "load-weights"),
    (
        r"torch/nn/modules/module\.py:(?:_apply|to|cuda|cpu|xpu|convert|half|float|double|to_empty)",
        "move",
    ),
    (r"torch/nn/parallel/distributed\.py:__init__", "wrap"),
    (r"torch/nn/parallel/", "parallel"),
    (r"torch/distributed/", "distributed"),
    (r"(?:code/)?__torch__/", "script"),
    (r"torch/nn/|torch/(?:nn/)?functional\.py:|torch/_jit_internal\.py:", "forward"),
)
_PLACES = tuple((re.compile(pattern), step) for pattern, step in _PLACES_TEXTS)
# Asked of the user's own source line where no frame of a library tells; the first that matches counts.
_CODE_TEXTS: tuple[tuple[str, Step], ...] = (
    (r"torch\.jit\.load\(", "script-load"),
    (r"optim\w*(?:\[[^\]]{1,20}\])?\.load_state_dict\(", "load-optimizer"),
    (r"sched\w*\.load_state_dict\(", "load-scheduler"),
    (r"\.load_state_dict\(", "load-weights"),
    (r"torch\.load\(|load_file\(|pickle\.load\(|from_pretrained\(|load_from_checkpoint\(", "load"),
    (r"torch\.save\(|save_file\(|save_pretrained\(|pickle\.dump\(", "save"),
    (r"scaler\.(?:step|unscale_|update)\(", "scaler"),
    (r"optim\w*(?:\[[^\]]{1,20}\])?\.step\(|\bopt\w{0,6}\.step\(", "optimizer"),
    (r"sched\w*\.step\(", "scheduler"),
    (r"clip_grad_(?:norm|value)_?\(", "clip"),
    (r"\.backward\(", "backward"),
    (
        r"\b(?:criterion|criteria|loss_?f\w{0,6}|loss_func\w{0,5}|cost)\w{0,8}\(|F\.(?:" + _LOSSES + r")\(",
        "loss",
    ),
    (r"\bexp_avg\w{0,3}\b|\bmomentum_buffer\b", "optimizer"),
    (r"\.(?:to|cuda|half|float|double)\(", "move"),
)
_CODE = tuple((re.compile(pattern, re.IGNORECASE), step) for pattern, step in _CODE_TEXTS)
_HIDDEN_STEPS = frozenset({"load", "nested-load"})
_SCRIPTED = ("TorchScript, serialized code", "__torch__", "failed in interpreter")
_MAYBE_SCRIPT: frozenset[Step] = frozenset({"", "forward", "loss", "move", "script"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What surrounds an error.

    Attributes:
        step: What the program was doing; empty where the text does not tell.
        layer: The innermost function or class of torch that ran: `conv2d`, `embedding`; empty without.
        yours: The user's innermost frame, or None.
        package: The framework whose frame is the innermost; empty without one.
    """

    step: Step = ""
    layer: str = ""
    yours: Frame | None = None
    package: str = ""
    has_frames: bool = False

    @property
    def code(self) -> str:
        """The user's innermost source line; empty where the text does not show it."""
        return "" if self.yours is None else self.yours.code


def read_scene(pasted: Pasted, raised: Raised | None) -> Scene:
    """Return what the program was doing when an error of a text was raised.

    Args:
        raised: One of its errors; None where the message was found outside of any.
    """
    frames = pasted.frames if raised is None else raised.frames
    if raised is not None and not frames and len(pasted.raised) == 1:
        frames = pasted.frames
    inner = frames[::-1]
    yours = next((frame for frame in inner if frame.owner == "yours" and not _is_script(frame)), None)
    step = _step_of_frames(inner) or ("" if yours is None else _step_of_code(yours.code))
    if not step and yours is None:
        step = _step_of_lines(pasted.lines)
    if step in _MAYBE_SCRIPT and any(word in pasted.flat for word in _SCRIPTED):
        step = "script"
    return Scene(
        step=step,
        layer=next((_layer(frame) for frame in inner if frame.owner == "torch" and _layer(frame)), ""),
        yours=yours,
        package=next((frame.package for frame in inner if frame.owner == "framework"), ""),
        has_frames=bool(frames),
    )


def _is_script(frame: Frame) -> bool:
    return "__torch__" in frame.path


def _step_of_frames(inner: Sequence[Frame]) -> Step:
    """Return the step of the innermost frame that tells one; a load inside a pickle counts more."""
    found: Step = ""
    inside: set[str] = set()
    for frame in inner:
        place = f"{frame.place if frame.package else frame.path}:{frame.function}"
        step: Step = next((step for pattern, step in _PLACES if pattern.match(place)), "")
        if step == "nested-load" and found in {"", "load"}:
            return step
        if step == "optimizer" and inside - {frame.package}:
            return found  # the optimizer called the closure that it was given, and that failed
        if frame.owner in {"yours", "framework"}:
            inside.add(frame.package or "yours")
        found = found or step
        if found and found not in _HIDDEN_STEPS:
            return found
    return found


def _step_of_code(code: str) -> Step:
    return next((step for pattern, step in _CODE if pattern.search(code)), "")


def _step_of_lines(lines: Sequence[str]) -> Step:
    """Return the step that a text without frames shows: people paste the failing line above the message."""
    for line in lines[:_MOST_LINES]:
        step = _step_of_code(line[:_MOST_CHARS])
        if step:
            return step
    return ""


_MOST_LINES = 12
_MOST_CHARS = 300
_NOT_LAYERS = frozenset({"_call_impl", "_wrapped_call_impl", "__call__", "wrapper", "forward", "inner"})


def _layer(frame: Frame) -> str:
    """Return what a frame of torch's is about: its function, or its class where the function is forward()."""
    if not frame.place.startswith("torch/nn/"):
        return ""
    if frame.function == "forward":
        return frame.place.rpartition("/")[2].removesuffix(".py")
    return "" if frame.function in _NOT_LAYERS else frame.function
