"""What names that differ have in common: a wrapper, a version, an adapter, quantized layers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from inspector.diagnose.errors.explanation import Said
from inspector.diagnose.errors.state_names import wrapper_of

OF_VERSIONS = ("num_batches_tracked", "position_ids", "token_type_ids", "rotary_emb.inv_freq")
_CHECKPOINT_KEYS = frozenset(
    [
        "state_dict",
        "model_state_dict",
        "optimizer",
        "optimizer_state_dict",
        "optimizer_states",
        "epoch",
        "lr_schedulers",
        "lr_scheduler",
        "scheduler",
        "pytorch-lightning_version",
        "hyper_parameters",
        "callbacks",
        "loops",
        "net",
        "args",
        "global_step",
        "best_acc",
        "best_acc1",
    ]
)
_LEFT_OVER = re.compile(
    r"(?:^|[._])(?:total_ops|total_params|n_averaged|_extra_state|masked_bias|anchor_grid)$"
)
_EMA = re.compile(r"^(?:module\.)?(?:model_)?ema[._]|_ema\.")
_LORA = re.compile(r"lora_(?:[ab]|down|up|magnitude)|\.base_layer\.|hada_w\d|lokr_w\d", re.IGNORECASE)
_QUANTIZED = re.compile(
    r"\.(?:SCB|weight_format|absmax|quant_map|nested_absmax|quant_state[\w.]*|qweight|qzeros|scales|g_idx|"
    r"weight_scale\w*|input_scale|_packed_params[\w.]*|zero_point)$"
)


def say_names(missing: Sequence[str], unexpected: Sequence[str]) -> Said:
    """Explain names that a model misses and names that it does not expect, where their kind is known."""
    names = [*missing, *unexpected]
    if names and all(name.endswith(OF_VERSIONS) for name in names):
        return _VERSIONS
    in_file, in_model = wrapper_of(unexpected), wrapper_of(missing)
    if in_file and not in_model:
        return _saved_wrapped(in_file)
    if in_model and not in_file:
        return _model_wrapped(in_model)
    known = next(
        (said for look in (_inner_wrapper, _path_prefix) if (said := look(missing, unexpected)).title), None
    )
    if known is not None:
        return known
    if _CHECKPOINT_KEYS.intersection(unexpected) or any(map(_WEIGHTS_KEY.search, unexpected)):
        return _whole(unexpected)
    return _of_kind(missing, unexpected)


def _inner_wrapper(missing: Sequence[str], unexpected: Sequence[str]) -> Said:
    """Explain a wrapper around a part of the model: its prefix stands in the middle of the names."""
    for prefix in ("module.", "_orig_mod."):
        if missing and all(f".{prefix}" in name for name in missing):
            plainer = {name.replace(f".{prefix}", ".", 1) for name in missing}
            if plainer.intersection(unexpected):
                return _model_wrapped(prefix)
        if unexpected and all(f".{prefix}" in name for name in unexpected):
            plainer = {name.replace(f".{prefix}", ".", 1) for name in unexpected}
            if plainer.intersection(missing):
                return _part_wrapped(prefix)
    return Said()


def _path_prefix(missing: Sequence[str], unexpected: Sequence[str]) -> Said:
    """Explain names that carry the path to a part of a larger model."""
    for longer, shorter, of_file in ((unexpected, missing, True), (missing, unexpected, False)):
        if longer and shorter and longer[0].endswith(f".{shorter[0]}"):
            return _longer(longer[0].removesuffix(shorter[0]), of_file=of_file)
    return Said()


def _longer(prefix: str, *, of_file: bool) -> Said:
    if of_file:
        return Said(
            title=f"The names in the file begin with {prefix}, those of the model do not",
            cause="The file was saved from a larger model, of which this model is a part: its names carry "
            "the path to that part.",
            advice=f"Cut it off: state_dict = {{name.removeprefix({prefix!a}): tensor for name, tensor in "
            f"state_dict.items() if name.startswith({prefix!a})}}.",
        )
    return Said(
        title=f"The names of the model begin with {prefix}, those in the file do not",
        cause="The file holds a part of this model, saved by itself: the names lack the path to that part.",
        advice=f"Load it into the part: model.{prefix.rstrip('.')}.load_state_dict(state_dict). Or add the "
        "path to the names.",
    )


def _part_wrapped(prefix: str) -> Said:
    return Said(
        title=f"The names in the file have {prefix} within them, those of the model do not",
        cause=f"A part of the model was inside a wrapper ({_wrapper(prefix)}) when it was saved, and is not "
        "here. The weights are the same.",
        advice=f"Take it out: state_dict = {{name.replace('.{prefix}', '.'): tensor for name, tensor in "
        "state_dict.items()}. strict=False would load nothing.",
    )


def _of_kind(missing: Sequence[str], unexpected: Sequence[str]) -> Said:
    names = [*missing, *unexpected]
    if any(".to_to_" in name for name in names) or (missing and _renamed_attention(missing, unexpected)):
        return _DIFFUSERS
    if unexpected and not missing and all(map(_LEFT_OVER.search, unexpected)):
        return _HARMLESS
    if unexpected and all(map(_EMA.search, unexpected)):
        return _AVERAGES
    if any(map(_QUANTIZED.search, names)):
        return _quantized(in_file=any(map(_QUANTIZED.search, unexpected)))
    if any(map(_LORA.search, names)):
        return _lora(in_file=any(map(_LORA.search, unexpected)))
    return Said()


def _renamed_attention(missing: Sequence[str], unexpected: Sequence[str]) -> bool:
    """Return whether one side has the names of attention that diffusers used before 0.15."""
    old, new = re.compile(r"\.(?:query|key|value|proj_attn)\."), re.compile(r"\.to_(?:q|k|v|out\.0)\.")
    return any(map(new.search, missing)) and any(map(old.search, unexpected))


_DIFFUSERS = Said(
    title="The names of attention layers are those of another version of diffusers",
    cause="diffusers 0.15 renamed query, key, value and proj_attn to to_q, to_k, to_v and to_out.0. Code "
    "that converts a checkpoint was written for the other version.",
    advice="Update the program, or install the version of diffusers that it asks for (requirements.txt).",
)
_VERSIONS = Said(
    title="The file and the code are of different versions",
    cause="Only buffers differ that came or went with a version: num_batches_tracked came with torch "
    "0.4.1, transformers no longer saves position_ids since 4.31. No weight is concerned.",
    advice="Load with strict=False, which is harmless here, or update torch (or transformers) to the "
    "version that wrote the file.",
)
_HARMLESS = Said(
    title="The file has entries beside the weights that the model does not know",
    cause="They are counters and constants that tools left there (thop's total_ops, SWA's n_averaged, "
    "_extra_state of Transformer Engine, masks of older versions). No weight is concerned.",
    advice="Load with strict=False, which is harmless here.",
)
_AVERAGES = Said(
    title="The file holds moving averages (EMA) of the weights beside them",
    cause="The names that begin with ema are a second copy of the weights, averaged during training. The "
    "model that is built here has no such copy.",
    advice="Nothing is lost: leave them out (strict=False, or only a warning). To use the averages, rename "
    "them: {name.removeprefix('ema_'): tensor ...}, as the framework's tools do.",
)


_WEIGHTS_KEY = re.compile(
    r"^(?!.*(?:optim|sched|scaler))(?:\w{0,40}state_dict\w{0,12}|net|params|weights)$", re.IGNORECASE
)


def _whole(unexpected: Sequence[str]) -> Said:
    key = next((name for name in unexpected if _WEIGHTS_KEY.search(name)), "")
    return Said(
        title="The whole checkpoint was passed, not the state dict in it",
        cause="Names such as epoch and optimizer are parts of a training checkpoint. The weights are one "
        "level deeper, under a key of their own.",
        advice=f"Pass that part: model.load_state_dict(checkpoint[{key or 'state_dict'!a}])"
        + ("." if key else " (or 'model', 'model_state_dict': print checkpoint.keys())."),
    )


def _quantized(*, in_file: bool) -> Said:
    if in_file:
        return Said(
            title="The file holds quantized weights, and the model is not quantized",
            cause="Names such as qweight, scales, absmax and SCB belong to quantized layers (GPTQ, AWQ, "
            "bitsandbytes, torch.ao); the model was built with ordinary ones.",
            advice="Load it with what quantized it: from_pretrained with the quantization configuration of "
            "the file (and bitsandbytes, auto-gptq or autoawq installed), or the model after "
            "torch.ao.quantization.prepare and convert. Or fetch the weights that are not quantized.",
        )
    return Said(
        title="The model is quantized, and the file is not",
        cause="The model was built with quantized layers, and the file holds ordinary weights.",
        advice="Load the weights into the ordinary model first, and quantize it afterwards.",
    )


def _lora(*, in_file: bool) -> Said:
    if in_file:
        return Said(
            title="The file is an adapter (LoRA), and the model is a base model without it",
            cause="The names with lora_ are the small matrices of an adapter, to be added to the weights of "
            "a base model; alone they are no model.",
            advice="Load the base model first, then the adapter: PeftModel.from_pretrained(base, folder), "
            "pipe.load_lora_weights(path) in diffusers, or the LoRA loader of the program.",
        )
    return Said(
        title="The model has adapters (LoRA), and the file is without them",
        cause="The model was wrapped by peft before the weights were loaded, which renames its layers "
        "(base_layer, lora_A, lora_B).",
        advice="Load the weights into the base model before get_peft_model, or the adapter with "
        "PeftModel.from_pretrained.",
    )


def _saved_wrapped(prefix: str) -> Said:
    return Said(
        title=f"The names in the file begin with {prefix}, those of the model do not",
        cause=f"The model was saved inside a wrapper ({_wrapper(prefix)}), which puts {prefix} before every "
        "name, and it is loaded into a model without the wrapper. The weights are the same.",
        advice=f"Take it off: state_dict = {{name.removeprefix({prefix!a}): tensor for name, tensor in "
        f"state_dict.items()}}. Next time save the model inside: model.{prefix}state_dict(). "
        "strict=False would load nothing.",
    )


def _model_wrapped(prefix: str) -> Said:
    return Said(
        title=f"The names of the model begin with {prefix}, those in the file do not",
        cause=f"The model is inside a wrapper ({_wrapper(prefix)}), which puts {prefix} before every name, "
        "and the file was saved without it. The weights are the same.",
        advice=f"Load before the model is wrapped, or into model.{prefix.rstrip('.')}. strict=False would "
        "load nothing.",
    )


def _wrapper(prefix: str) -> str:
    of_parallel = "DataParallel, DistributedDataParallel"
    named = [of_parallel] if "module." in prefix else []
    return " and ".join([*named, *(["torch.compile"] if "_orig_mod." in prefix else [])])
