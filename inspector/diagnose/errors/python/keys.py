"""Messages about a key that a checkpoint, or an adapter, does not have."""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import Context, ErrorKind, Said, Tied, Told
from inspector.diagnose.errors.state_names import state_dicts
from inspector.diagnose.errors.ties import top_keys
from inspector.diagnose.listing import listed, plain
from inspector.model.findings import Fix

_PLAIN = Fix(style="plain")


def _bare(key: str) -> Tied:
    """Report that the file is a state dict itself, which is what the key was to lead to."""
    here = f"There is no {plain(key)} in this file: it is itself a state dict, with the weights at its top."
    if _NOT_WEIGHTS.search(key):
        return Tied(
            fits="yes", here=here, advice=f"It holds only weights: skip what reads {plain(key)}.", fix=_PLAIN
        )
    advice = "Leave the key out: model.load_state_dict(torch.load(path, map_location='cpu'))."
    return Tied(fits="yes", here=here, advice=advice, fix=_PLAIN)


def _is_key_of_checkpoint(told: Told) -> bool:
    """Return whether a missing key was probably looked up in a checkpoint."""
    key = told.groups["key"]
    if _QUANTIZED.search(key):
        return True
    if not key.strip() or " " in key.strip() or told.scene.step == "data":
        return False
    if _OF_CHECKPOINT.search(key):
        return True
    frames = [frame for frame in told.pasted.frames if frame.code]
    if not frames:
        # A bare name may be a column of a table or a setting: only what checkpoints use, or stands near one.
        near = told.pasted.flat[:_MOST_NEAR]
        return _USUAL_KEY.search(key) is not None or _NEAR_CHECKPOINT.search(near) is not None
    return any(_OF_CHECKPOINT.search(frame.code) for frame in frames)


_NOT_WEIGHTS = re.compile(r"optim|sched|epoch|step|iter|scaler|arg|config|best|loss|hyper", re.IGNORECASE)


_MOST_NEAR = 16 * 1024


_NEAR_CHECKPOINT = re.compile(
    r"ckpt|checkpoint|state_?dict|torch\.load|pretrain|resum|\.pth?\b|\.safetensors|weights", re.IGNORECASE
)


_USUAL_KEY = re.compile(
    r"^(?:loops|callbacks|best_fitness|anchors|train_args|hyper_parameters|net|netg|netd|g|d|amp|scaler|global_step|params|ema|lr_schedulers?|generator|discriminator)$|"
    r"^net_\w{1,12}$|_ema$|_optim|_sched|params_|_params$|encoder|decoder|backbone|\.(?:weight|bias)$",
    re.IGNORECASE,
)


_OF_CHECKPOINT = re.compile(
    r"ckpt|checkpoint|state_?dict|torch\.load|pretrain|\bstate\b|resume|weights|\bnet\b|\bmodel\b|snapshot|"
    r"param_groups|\bema\b|\bepoch\b|optimizer|hyper_param|load_file",
    re.IGNORECASE,
)


def _key_said(told: Told) -> Said:
    """Explain keys of a training run, of an adapter, and names of single tensors."""
    key = told.groups["key"]
    if _QUANTIZED.search(key):
        return Said(
            title="The file holds quantized weights, and is read as if it did not",
            cause="Names that end in SCB, absmax, qweight, scales and the like belong to quantized layers "
            "(bitsandbytes, GPTQ, AWQ). The model was built with ordinary ones.",
            advice="Tell the program how the file is quantized (--quantization, load_in_8bit, a "
            "quantization_config), if it knows that kind; otherwise use the weights that are not quantized.",
        )
    if _OF_ADAPTER.search(key):
        return Said(
            cause="The name is that of a layer inside an adapter (peft, LoRA). The file has it under "
            "another name, or not at all: it was written by another tool or another version of peft, "
            "bitsandbytes or diffusers, or it is for another base model.",
            advice="Update what reads it (python -m pip install -U peft bitsandbytes diffusers), or install "
            "the versions that the file was made with; compare its names with those of the base model.",
        )
    if _TENSOR_NAME.search(key):
        return Said(
            title="The checkpoint has no tensor of that name",
            cause="The code looks for a single tensor: the file belongs to another model or version, its "
            "names have a prefix (module., model.), or the state dict is one level deeper.",
            advice="Compare it with the names in the file: list(checkpoint)[:10].",
        )
    if _NOT_WEIGHTS.search(key):
        return Said(
            title="The checkpoint has no training state of that name",
            cause=f"The code wants to resume and asks for {plain(key)}. Published weights have no optimizer, "
            "scheduler or epoch: they were taken out. Or the run saved them under another key.",
            advice="To start from these weights, load only the model and leave out what resumes (no "
            "--resume; a pretrained= or weights= option). Otherwise use the last checkpoint of the run, and "
            "the keys that it has: checkpoint.keys().",
        )
    return Said()


_QUANTIZED = re.compile(r"\.(?:SCB|absmax|quant_map|quant_state[\w.]{0,30}|qweight|qzeros|scales|g_idx)$")


_OF_ADAPTER = re.compile(r"base_model\.model\.|lora[_.]|_lora\b|to_[kqv]_lora|adapter", re.IGNORECASE)


_TENSOR_NAME = re.compile(
    r"\.\w{1,40}\.(?:weight|bias|running_mean|running_var)$|^\w{1,40}\.(?:weight|bias)$"
)


def _key(context: Context) -> Tied:
    """Compare the key of a KeyError with the keys of this file."""
    key = context.groups["key"]
    tops = top_keys(context)
    held = {str(step) for row in context.checkpoint.values for step in row.keys}
    held |= {str(step) for row in context.checkpoint.tensors for step in row.keys}
    if key in tops:
        here = f"This file has the top-level key {plain(key)}: the error comes from another file."
        return Tied(fits="no", here=here)
    if key in held:
        here = f"{plain(key)} is in this file, but deeper; the top-level keys are {listed(tops)}."
        return Tied(fits="yes", here=here, fix=_PLAIN)
    if any(not row.path for row in state_dicts(context.checkpoint)):
        return _bare(key)
    shown = f"the top-level keys are {listed(tops)}" if tops else "it has no keys"
    here = f"There is no {plain(key)} in this file; {shown}."
    return Tied(fits="unknown", here=here, fix=_PLAIN)


KEY_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="key-missing",
        title="The checkpoint has no such key",
        pattern=r"KeyError: ?['\"](?P<key>[^'\"]{1,120})['\"]",
        cause="The code looks up a key that this checkpoint does not have: every training script chooses "
        "its own keys (state_dict, model, model_state_dict, net), or the file is itself a state dict.",
        advice="Use the keys that are in the file: checkpoint.keys() lists them.",
        tie=_key,
        when=_is_key_of_checkpoint,
        say=_key_said,
    ),
)
