"""Messages of `load_state_dict` about names and shapes, see `torch/nn/modules/module.py`.

torch 1.0 had the two shapes of a size mismatch the wrong way round (pytorch#15720), 0.3 put it in a sentence
of its own, and named one key at a time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from inspector.diagnose.errors.explanation import Context, Fit, Tied, Told
from inspector.diagnose.errors.paste import Pasted, squeeze
from inspector.diagnose.errors.state_names import (
    WRAPPERS,
    Renaming,
    StateDict,
    best_match,
    edited,
    find_renaming,
    state_dicts,
    wrapper_of,
)
from inspector.diagnose.errors.ties import global_names
from inspector.diagnose.listing import listed, plain
from inspector.model.findings import Fix
from inspector.units import format_count, format_shape

# What names that differ have in common: a wrapper, a version, an adapter, quantized layers.

_OF_VERSIONS = ("num_batches_tracked", "position_ids", "token_type_ids", "rotary_emb.inv_freq")
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


def sort_of_names(told: Told) -> dict[str, str]:
    """Find what names that a model misses, and names that it does not expect, have in common."""
    missing, unexpected = read_keys(told.pasted)
    sort, prefix = _sort(missing, unexpected)
    key = next((name for name in unexpected if _WEIGHTS_KEY.search(name)), "") if sort == "whole" else ""
    is_known = sort != "saved-wrapped" or all(name.endswith(_OF_VERSIONS) for name in unexpected)
    return {
        "sort": sort,
        "key": key,
        "prefix": plain(prefix),
        "part": plain(prefix.rstrip(".")),
        "quoted": ascii(key or prefix),
        "wrapper": " and ".join(text for step, text in _WRAPPED_BY.items() if step in prefix),
        "finding": "" if is_known else _finding_of_wrapper(prefix),
    }


_WRAPPED_BY = {"module.": "DataParallel, DistributedDataParallel", "_orig_mod.": "torch.compile"}


def _sort(missing: Sequence[str], unexpected: Sequence[str]) -> tuple[str, str]:
    """Return the sort of names, and the prefix that makes the difference."""
    names = [*missing, *unexpected]
    if names and all(name.endswith(_OF_VERSIONS) for name in names):
        return "versions", ""
    in_file, in_model = wrapper_of(unexpected), wrapper_of(missing)
    if bool(in_file) != bool(in_model):
        return ("saved-wrapped", in_file) if in_file else ("model-wrapped", in_model)
    for prefix in ("module.", "_orig_mod."):
        for longer, shorter, sort in (
            (missing, unexpected, "model-wrapped"),
            (unexpected, missing, "part-wrapped"),
        ):
            if longer and all(f".{prefix}" in name for name in longer):
                bare = {name.replace(f".{prefix}", ".", 1) for name in longer}
                if bare.intersection(shorter):
                    return sort, prefix
    for longer, shorter, sort in ((unexpected, missing, "longer"), (missing, unexpected, "shorter")):
        if longer and shorter and longer[0].endswith(f".{shorter[0]}"):
            return sort, longer[0].removesuffix(shorter[0])
    if _CHECKPOINT_KEYS.intersection(unexpected) or any(map(_WEIGHTS_KEY.search, unexpected)):
        return "whole", ""
    return _sort_of_layers(missing, unexpected), ""


def _sort_of_layers(missing: Sequence[str], unexpected: Sequence[str]) -> str:
    names = [*missing, *unexpected]
    if any(".to_to_" in name for name in names) or _renamed_attention(missing, unexpected):
        return "diffusers"
    if unexpected and not missing and all(map(_LEFT_OVER.search, unexpected)):
        return "left-over"
    if unexpected and all(map(_EMA.search, unexpected)):
        return "averages"
    for sort, pattern in (("quantized", _QUANTIZED), ("adapter", _LORA)):
        if any(map(pattern.search, names)):
            return f"{sort}-file" if any(map(pattern.search, unexpected)) else f"{sort}-model"
    return ""


def _renamed_attention(missing: Sequence[str], unexpected: Sequence[str]) -> bool:
    """Return whether one side has the names of attention that diffusers used before 0.15."""
    old, new = re.compile(r"\.(?:query|key|value|proj_attn)\."), re.compile(r"\.to_(?:q|k|v|out\.0)\.")
    return any(map(new.search, missing)) and any(map(old.search, unexpected))


_WEIGHTS_KEY = re.compile(
    r"^(?!.*(?:optim|sched|scaler))(?:\w{0,40}state_dict\w{0,12}|net|params|weights)$", re.IGNORECASE
)


_SECTION = re.compile(
    r"(missing|unexpected) keys?(?:\(s\))? ?(?:in (?:source )?state_dict)?:|size mismatch for|while copying",
    re.IGNORECASE,
)
_BARE = re.compile(r"[\w-]{1,60}(?:[._][\w-]{1,60}){1,30}")
_QUOTED = re.compile(r"\"([^\"]{1,400})\"|'([^']{1,400})'")
_OLD_KEY = re.compile(r"(missing|unexpected) key ['\"]?([\w.]{1,300})['\"]? in state_dict", re.IGNORECASE)
_SIZE = r"(?:torch\.Size\()?\[?\(?(?P<{}>[\d, ]{{0,120}})"
_SIZES = tuple(
    (re.compile(pattern, re.IGNORECASE), re.compile(squeeze(pattern), re.IGNORECASE))
    for pattern in (
        r"size mismatch for (?P<name>[^\s:]{1,300}): copying a param with shape "
        + _SIZE.format("file")
        + r"\)?\]?\)? from checkpoint, the shape in current model is "
        + _SIZE.format("model"),
        r"size mismatch for (?P<name>[^\s:]{1,300}): copying a param of "
        + _SIZE.format("model")
        + r"\)?\]?\)? from checkpoint, where the shape is "
        + _SIZE.format("file"),
        r"while copying the parameter named '?\"?(?P<name>[^\s,'\"]{1,300})'?\"?, whose dimensions in the "
        r"model are "
        + _SIZE.format("model")
        + r"\)?\]?\)? and whose dimensions in the checkpoint are "
        + _SIZE.format("file"),
    )
)
_MOST_NAMES = 20_000
_FEWEST = 2
"""Names that an edit has to explain: one alone may be of any model."""
_PLAIN = Fix(style="plain")
_EMPTY = format_shape((0,))
Size = tuple[str, str, str]
"""A parameter's name with its shape in the file and in the model, as texts."""


# --- what the message says ----------------------------------------------------------------------------------


def read_keys(pasted: Pasted) -> tuple[list[str], list[str]]:
    """Read the missing and the unexpected names out of a message."""
    text = pasted.flat
    keys: dict[str, list[str]] = {"missing": [], "unexpected": []}
    marks = list(_SECTION.finditer(text))[:_MOST_NAMES]
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    for mark, end in zip(marks, ends, strict=False):
        if mark[1]:
            keys[mark[1].lower()] += _names(text[mark.end() : end])
    for match in _OLD_KEY.finditer(text):
        keys[match[1].lower()].append(match[2])
    return keys["missing"][:_MOST_NAMES], keys["unexpected"][:_MOST_NAMES]


def _names(section: str) -> list[str]:
    """Return the quoted names; a space in one is a broken line, and torch 0.3 quoted the set as well."""
    section = section.replace('"{', "{").replace('}"', "}")
    quoted = [squeeze(match[1] or match[2]) for match in _QUOTED.finditer(section)]
    return quoted or [part for part in section.strip(" :").split(", ") if _BARE.fullmatch(part)]


def read_sizes(pasted: Pasted) -> list[Size]:
    """Read the mismatches out of a message, as (name, shape in the file, shape in the model)."""
    found: dict[str, Size] = {}
    for spaced, squeezed in _SIZES:
        matches = list(spaced.finditer(pasted.flat)) or list(squeezed.finditer(pasted.squeezed))
        for match in matches[:_MOST_NAMES]:
            found.setdefault(match["name"], (match["name"], _shape(match["file"]), _shape(match["model"])))
    return list(found.values())


def _shape(text: str) -> str:
    sizes = [part for part in text.replace(" ", "").split(",") if part]
    return format_shape(tuple(int(size[:12]) for size in sizes))


def _finding_of_wrapper(prefix: str) -> str:
    return "prefix-compiled" if prefix.startswith("_orig_mod.") else "prefix-module"


def _is_embedding(name: str, in_file: str, in_model: str) -> bool:
    """Return whether a table of embeddings differs in its number of rows alone."""
    first, second = in_file.split(" × "), in_model.split(" × ")
    return _EMBEDDING.search(name) is not None and first[1:] == second[1:] and len(first) == len(second) > 1


_EMBEDDING = re.compile(
    r"embed\w*(?:\.\w{1,30})?\.weight$|wte\.weight$|wpe\.weight$|pos_embed$|position_embedding$"
)


def sort_of_sizes(told: Told) -> dict[str, str]:
    """Find why shapes differ; torch names them also where they are the same and something else failed."""
    sizes = read_sizes(told.pasted)
    if sizes and all(in_file == in_model for _, in_file, in_model in sizes):
        sort = "same"
    elif any(in_file == _EMPTY != in_model for _, in_file, in_model in sizes):
        sort = "empty-in-file"
    elif sizes and all(_is_embedding(*size) for size in sizes):
        sort = "embeddings"
    elif any("lora_" in name for name, *_ in sizes):
        sort = "adapter"
    else:
        sort = "empty" if any(_EMPTY in size[1:] for size in sizes) else "other"
    return {"sort": sort}


# --- what the file says -------------------------------------------------------------------------------------


def tie_keys(context: Context) -> Tied:
    """Compare the names of the message with those of the file."""
    missing, unexpected = read_keys(context.pasted)
    rows = state_dicts(context.checkpoint)
    whole = _whole_checkpoint(context, unexpected, rows)
    if whole is not None:
        return whole
    row = best_match(rows, unexpected or missing)
    if row is None or not (missing or unexpected):
        return Tied(fits="unknown", here="No names were found in the text: paste the whole message.")
    renaming = find_renaming(missing, row.tensors) if missing else None
    if renaming is None and not missing and wrapper_of(unexpected):
        renaming = Renaming(in_file=wrapper_of(unexpected), in_model="")
    present = [name for name in unexpected if name in row.tensors]
    if unexpected and not present:
        return _none_of(rows, missing, unexpected)
    if renaming is not None:
        return _renamed(row, renaming, present)
    return _other_names(row, missing, present)


def _whole_checkpoint(context: Context, unexpected: list[str], rows: list[StateDict]) -> Tied | None:
    """Find out whether a whole checkpoint was given instead of the state dict in it."""
    tops = {str(tensor.keys[0]) for tensor in context.checkpoint.tensors if len(tensor.keys) > 1}
    tops |= {str(value.keys[0]) for value in context.checkpoint.values if value.keys}
    given = [name for name in unexpected if name in tops]
    weights = next((row for row in rows if row.path), None)
    if not given or weights is None:
        return None
    first = next(iter(weights.tensors.values()))
    way = "".join(f"[{key!a}]" for key in first.keys[: weights.path.count("/") + 1])
    return Tied(
        fits="yes",
        here=f"load_state_dict was given the whole checkpoint, with {listed(given)} in it. The weights "
        f"({format_count(len(weights.tensors), 'tensor')}) are under {plain(weights.path)}.",
        paths=[tensor.path for tensor in weights.tensors.values()],
        advice=f"Pass only that part: model.load_state_dict(checkpoint{way}).",
        fix=_PLAIN,
    )


def _none_of(rows: list[StateDict], missing: list[str], unexpected: list[str]) -> Tied:
    """Return whether names that stand nowhere in this file can be made of its names all the same.

    A file with every name that is missing would load, unless code changes the names: letters that are cut off
    show that; a wrapper's prefix shows rather that the file was saved from another model than this one.
    """
    row, found = max(((row, edited(unexpected, row)) for row in rows), key=lambda pair: len(pair[1]))
    none = f"None of the unexpected names ({listed(unexpected)}) is in this file"
    if not found:
        return Tied(fits="no", here=f"{none}, nor with another prefix: the error is about another file.")
    name, held = next(iter(found.items()))
    as_here = f"what is {plain(name)} there is {plain(held)} here"
    if len(found) * 2 <= len(unexpected) or len(found) < _FEWEST:
        return Tied(fits="unknown", here=f"{none}, but some are alike ({as_here}): it may be another file.")
    is_cut = held.endswith(name) and not held.endswith(f".{name}")
    if missing and not is_cut and all(want in row.tensors for want in missing):
        here = (
            f"All names that the message misses are in this file, and of the others it is said: {as_here}. "
        )
        here += "The error is about another file, unless the code changes the names before load_state_dict."
        return Tied(fits="no" if wrapper_of([name]) else "unknown", here=here)
    here = f"{none} as it stands: the code changed the names before load_state_dict ({as_here})."
    paths = [row.tensors[held].path for held in found.values()]
    return Tied(fits="yes", here=here, paths=paths, advice="Take the code out that changes the names.")


def _renamed(row: StateDict, renaming: Renaming, present: list[str]) -> Tied:
    old, new = renaming.in_file, renaming.in_model
    paths = [tensor.path for name, tensor in row.tensors.items() if name.startswith(old)]
    sample = next((name for name in row.tensors if name.startswith(old)), "")
    here = (
        f"The names differ only in their prefix: what this file calls {plain(sample)} is "
        f"{plain(new + sample.removeprefix(old))} in your model."
    )
    renamed = f"{{{new!a} + name.removeprefix({old!a}): tensor for name, tensor in state_dict.items()}}"
    advice = f"Rename before loading: state_dict = {renamed}."
    if old in WRAPPERS and not new:
        here += f" The model was saved inside a wrapper, which put {old} before every name."
        paths = [row.tensors[name].path for name in present] or paths
        return Tied(
            fits="yes", here=here, paths=paths, fix=_PLAIN, advice=advice, finding=_finding_of_wrapper(old)
        )
    if new in WRAPPERS and not old:
        here += " Your model is inside a wrapper (DataParallel, torch.compile), the file was saved without."
        advice = "Load the weights before the model is wrapped, or into model.module."
    return Tied(fits="yes", here=here, paths=paths, advice=advice)


def _other_names(row: StateDict, missing: list[str], present: list[str]) -> Tied:
    where = plain(row.path) or "the root"
    absent = [name for name in missing if name not in row.tensors]
    parts = []
    if present:
        parts.append(f"In this file, at {where}: {format_count(len(present), 'unexpected name')}.")
    if absent:
        parts.append(f"Not in it: {format_count(len(absent), 'missing name')} ({listed(absent)}).")
    if len(absent) < len(missing):
        parts.append(f"In it nevertheless: {listed([name for name in missing if name in row.tensors])}.")
    parts.append(
        "A prefix does not explain it: the file belongs to another model, or to another version of it."
    )
    # A state dict that is only a part of the file may be there under the same names twice.
    fits: Fit = "yes" if present else "unknown" if absent or row.path else "no"
    return Tied(fits=fits, here=" ".join(parts), paths=[row.tensors[name].path for name in present])


def tie_sizes(context: Context) -> Tied:
    """Compare the shapes of the message with those of the file."""
    sizes = read_sizes(context.pasted)
    row = best_match(state_dicts(context.checkpoint), [name for name, *_ in sizes])
    held = {name: row.tensors[name] for name, *_ in sizes if name in row.tensors} if row is not None else {}
    if not held:
        if not sizes:
            return Tied(fits="unknown", here="No shapes were found in the text: paste the whole message.")
        return _sizes_elsewhere(context, sizes)
    same = [size for size in sizes if size[0] in held and format_shape(held[size[0]].shape) == size[1]]
    if not same:
        name, said, _ = next(size for size in sizes if size[0] in held)
        here = f"{plain(name)} is {format_shape(held[name].shape)} in this file, not {said}"
        paths = [held[name].path]
        if any(_is_slice(size[1], format_shape(held[size[0]].shape)) for size in sizes if size[0] in held):
            here += ". One is a part of the other, as where weights are split over processes."
            return Tied(fits="unknown", here=here, paths=paths)
        return Tied(fits="no", here=f"{here}: the error is about another file.", paths=paths)
    shown = [f"{name}: {in_file} here, {in_model} in your model" for name, in_file, in_model in same]
    have = "has" if len(same) == 1 else "have"
    here = (
        f"{format_count(len(same), 'tensor')} of this file {have} a different shape than your model expects. "
    )
    here += f"{'; '.join(map(plain, shown[:4]))}."
    return Tied(fits="yes", here=here, paths=[held[name].path for name, *_ in same])


def _sizes_elsewhere(context: Context, sizes: list[Size]) -> Tied:
    """Look for tensors of the shapes in the message that have other prefixes in this file."""
    names = [name for name, *_ in sizes]
    here = f"This file has no tensor named {listed(names)}"
    for row in state_dicts(context.checkpoint):
        found = edited(names, row)
        same = {
            name: found[name]
            for name, said, _ in sizes
            if name in found and format_shape(row.tensors[found[name]].shape) == said
        }
        if same:
            held = next(iter(same.values()))
            here += f", but {plain(held)} has that shape: the code changed the names before."
            return Tied(fits="yes", here=here, paths=[row.tensors[held].path for held in same.values()])
    return Tied(fits="no", here=f"{here}, nor one of that shape with another prefix: it is another file.")


def _is_slice(said: str, held: str) -> bool:
    """Return whether shapes differ in one dimension, and there by a whole factor."""
    pairs = list(zip(said.split(" \u00d7 "), held.split(" \u00d7 "), strict=False))
    apart = [(one, other) for one, other in pairs if one != other]
    if len(apart) != 1 or said.count(" ") != held.count(" ") or not "".join(apart[0]).isdecimal():
        return False
    small, large = sorted(map(int, apart[0]))
    return small > 1 and large % small == 0


def tie_not_a_tensor(context: Context) -> Tied:
    """Find what the message names."""
    name = context.groups["name"]
    values = [value for value in context.checkpoint.values if value.keys and value.keys[-1] == name]
    if values:
        here = f"{plain(values[0].path)} is a {plain(values[0].type)} in this file, not a tensor."
        return Tied(fits="yes", here=here)
    return Tied(fits="unknown", here="In this file that name is a tensor, or it does not occur.")


def tie_module_given(context: Context) -> Tied:
    """Return whether this file gives a module where a state dict was wanted."""
    name = context.checkpoint.module_class
    if name is not None:
        here = f"This file is a whole pickled module, {plain(name)}: torch.load returns the model itself."
        return Tied(fits="yes", here=here, fix=Fix(style="module"), finding="whole-module")
    if any(use.startswith("torch.nn.modules.") for use in global_names(context)):
        here = "This file holds pickled modules: load_state_dict wants the state_dict() of one."
        return Tied(fits="yes", here=here)
    if context.checkpoint.root == "mapping":
        here = "torch.load returns a dictionary for this file: the error comes from another file."
        return Tied(fits="no", here=here)
    return Tied(fits="unknown", here=f"torch.load returns a {plain(context.checkpoint.root)} for this file.")
