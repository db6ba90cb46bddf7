"""The frames of a traceback, in each of the ways that people's tools print them.

Python and its workers (`File "a.py", line 3, in f`), TorchScript (the same, of "serialized code"), notebooks
(`a.py in f(x)`, `Cell In[5], line 3`, `File a.py:3, in f(x)`), pytest (`a.py:3: in f`) and Rich, which
Lightning and web interfaces use (`a.py:3 in f`, in a box). All patterns are anchored and bounded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from inspector.records import dataclass
from inspector.units import cut_text

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
    """One frame.

    Attributes:
        path: The file as it stands in the text, of any system.
        line: The line in it; 0 where the text does not say.
        function: The function; empty where the text does not say.
        code: The source line that ran; empty where the text does not say.
        owner: Whose code it is: `yours`, `torch`, `framework`, or `python` for Python's own.
        package: The package that it belongs to, such as `torch`; empty for the user's own code.
        place: The path from the package on, such as `torch/optim/adam.py`.
    """

    path: str
    line: int
    function: str
    code: str
    owner: Owner
    package: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A frame's first line, before its code is known."""

    path: str
    line: int
    function: str
    code: str


def is_cut_head(line: str) -> bool:
    """Return whether a line begins a frame and was broken by a terminal."""
    return _CUT_HEAD.match(line) is not None


def read_head(line: str) -> Head | None:
    """Read the first line of a frame; None for any other line."""
    if _MAYBE.match(line) is None:
        return None
    for pattern in _HEADS:
        match = pattern.match(line)
        if match is not None:
            parts = match.groupdict()
            return Head(
                path=parts["path"].strip(),
                line=int(parts.get("line") or 0),
                function=(parts.get("function") or "")[:_MOST_FUNCTION],
                code=cut_text((parts.get("code") or "").strip(), _MOST_CODE),
            )
    return None


def finish(head: Head, below: Sequence[str]) -> Frame:
    """Make a frame of its first line and the few lines below it, up to the next frame."""
    line, code = _code(head, below)
    located = locate(head.path)
    return Frame(
        path=head.path,
        line=line,
        function=head.function,
        code=head.code or cut_text(code, _MOST_CODE),
        owner=located.owner,
        package=located.package,
        place=located.place,
    )


def _code(head: Head, below: Sequence[str]) -> tuple[int, str]:
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
