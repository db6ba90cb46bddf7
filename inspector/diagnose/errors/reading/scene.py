"""What the program was doing when an error was raised: in which step, and after which line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from inspector.diagnose.errors.reading.frames import Frame
from inspector.diagnose.errors.reading.pasted import Pasted, Raised
from inspector.records import dataclass

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
        has_frames: Whether the error has frames at all.
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
        pasted: The text.
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
