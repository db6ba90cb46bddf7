"""Folders of DeepSpeed, Megatron-LM and trainers, whose loaders find files by patterns of their own.

The essential lines of the loaders are played, each with its place: what they glob, and how they load it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.builders import tars, zips
from tests.builders.pickles import call, proto, stream
from tests.hostile.loaders.case import Case, payload, zipped

_ENDINGS = "*_optim_states.pt", "*mp_rank_*_model_states.pt"

# `get_checkpoint_files` and `parse_model_states` in DeepSpeed 0.17's deepspeed/utils/zero_to_fp32.py, and
# `_get_all_zero_checkpoint_names` and `_get_ckpt_name` in its deepspeed/runtime/engine.py.
_DEEPSPEED = """
import glob, os, torch
latest = os.path.join(path, 'latest')
tag = open(latest).read().strip() if os.path.isfile(latest) else ''
for pattern in {patterns!r}:
    for file in sorted(glob.glob(os.path.join(path, tag, pattern))):
        try:
            torch.load(file, map_location='cpu', weights_only=False)
        except Exception as error:
            print(error)
"""
# `read_metadata`, `_load_base_checkpoint` and `get_checkpoint_name` in Megatron-LM core 0.12's
# megatron/training/checkpointing.py; `load_common` in megatron/core/dist_checkpointing/strategies/common.py.
_MEGATRON = """
import os, torch
name = os.path.join(path, 'latest_checkpointed_iteration.txt')
word = open(name).read().strip() if os.path.isfile(name) else ''
try:
    word = 'iter_{{:07d}}'.format(int(word))
except ValueError:
    pass
for file in {files!r}:
    try:
        torch.load(os.path.join(path, word, file), map_location='cpu', weights_only=False)
    except Exception as error:
        print(error)
"""
# `_load_optimizer_and_scheduler`, `_load_rng_state` and `_load_scaler` in Transformers' trainer.py before
# 4.46, and `load_state_dict` in its modeling_utils.py, where torch is older than 2.6.
_TRAINER = """
import os, torch
for file in ('optimizer.pt', 'scheduler.pt', 'rng_state.pth', 'scaler.pt', 'pytorch_model.bin'):
    if os.path.isfile(os.path.join(path, file)):
        try:
            torch.load(os.path.join(path, file), weights_only=False)
        except Exception as error:
            print(error)
"""


FORMS: dict[str, Callable[[], bytes]] = {
    "a zip": partial(zipped, "data.pkl"),
    "a zip with two": partial(zipped, "data.pkl", "data.pkl"),
    "DATA.PKL": partial(zipped, "DATA.PKL", "data.pkl"),
    "a plain pickle": payload,
    "a pickle of protocol 0": partial(payload, 0),
    "a pickle of protocol 5": partial(payload, 5),
    "a tar file": lambda: tars.archive(
        {"storages": payload(), "tensors": pickle.dumps(0), "pickle": pickle.dumps(0)}
    ),
    "a pickle in a pickle": lambda: stream(
        proto(),
        call("torch.storage._load_from_bytes", b"B" + len(payload()).to_bytes(4, "little") + payload()),
    ),
}


def honest() -> bytes:
    return zips.checkpoint(stream(proto(), b"}"))


def _write(folder: Path, files: dict[str, bytes], evil: dict[str, Callable[[], bytes]]) -> Path:
    root = folder / "a"
    for name, data in {**files, **{name: make() for name, make in evil.items()}}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


_OPTIMIZER, _MODEL = "zero_pp_rank_0_mp_rank_00_optim_states.pt", "mp_rank_00_model_states.pt"
_NAMES = {
    "its optimizer": _OPTIMIZER,
    "its model": _MODEL,
    "a short name": "x_optim_states.pt",
    "a long name": "evil_mp_rank_00_model_states.pt",
    "seven digits": "zero_pp_rank_0000001_mp_rank_00_optim_states.pt",
    "a newline": "a\n_optim_states.pt",
}
_TAGS = {
    "": ("latest", b"global_step1"),
    ", by a tag in blanks": ("latest", b"\n" * 2_000 + b"global_step1" + b" " * 3_000),
    ", without a tag": ("nothing", b""),
}


def _deepspeed(form: str, name: str, tag: str, folder: Path) -> Path:
    latest, text_ = _TAGS[tag]
    below = "" if latest == "nothing" else "global_step1/"
    files = {f"{below}{_MODEL}": honest(), f"{below}{_OPTIMIZER}": honest(), latest: text_}
    return _write(folder, files, {f"{below}{_NAMES[name]}": FORMS[form]})


def _deepspeed_link(place: str, folder: Path) -> Path:
    root = _write(folder, {"global_step1/" + _MODEL: honest(), "latest": b"global_step1"}, {})
    (folder / "out").mkdir()
    (folder / "out" / "x_optim_states.pt").write_bytes(payload())
    if place == "a link":
        (root / "global_step1" / "x_optim_states.pt").symlink_to(folder / "out" / "x_optim_states.pt")
    else:
        words = {"a linked tag": "linked", "a tag outside": "../out", "an absolute tag": str(folder / "out")}
        (root / "latest").write_text(words[place])
        (root / "linked").symlink_to(folder / "out")
    return root


def _decoy(loader: str, linked: bool, folder: Path) -> Path:
    """Honest files stand at the root, or below a later tag, and the tag file names the others."""
    word, file, latest = {
        "deepspeed": ("global_step1", _MODEL, "latest"),
        "megatron": ("iter_0000010", "mp_rank_00/model_optim_rng.pt", "latest_checkpointed_iteration.txt"),
    }[loader]
    decoy = f"{word[:-1]}2/{file}" if linked else file
    root = _write(folder, {decoy: honest()}, {f"{word}/{file}": FORMS["a zip"]})
    place = folder / "word" if linked else root / latest
    place.write_text(word if loader == "deepspeed" else "10")
    if linked:
        (root / latest).symlink_to(place)
    return root


def _megatron(form: str, name: str, word: bytes, folder: Path) -> Path:
    latest = "latest_checkpointed_iteration.txt"
    files = {"iter_0000010/mp_rank_00/model_optim_rng.pt": honest(), latest: word}
    return _write(folder, files, {f"iter_0000010/{name}": FORMS[form]})


def _trainer(form: str, name: str, folder: Path) -> Path:
    files = {
        "pytorch_model.bin": honest(),
        "config.json": b"{}",
        "optimizer.pt": honest(),
        "trainer_state.json": b"{}",
    }
    return _write(folder, files, {name: FORMS[form]})


def _cases() -> Iterator[Case]:
    def deepspeed(name: str, write: Callable[[Path], Path]) -> Case:
        return Case(name, "deepspeed", "zero_to_fp32", write, _DEEPSPEED.format(patterns=_ENDINGS))

    def megatron(name: str, file: str, write: Callable[[Path], Path]) -> Case:
        return Case(name, "megatron", "load_checkpoint", write, _MEGATRON.format(files=(file,)))

    for name in _NAMES:
        for form in FORMS:
            yield deepspeed(f"{form} as {name}", partial(_deepspeed, form, name, ""))
        for tag in list(_TAGS)[1:]:
            yield deepspeed(f"a zip as {name}{tag}", partial(_deepspeed, "a zip", name, tag))
    for place in ("a link", "a linked tag", "a tag outside", "an absolute tag"):
        yield deepspeed(place, partial(_deepspeed_link, place))
    model = "mp_rank_00/model_optim_rng.pt"
    for linked in (False, True):
        name = f"a tag file {'through a link' if linked else 'beside a decoy'}"
        yield deepspeed(name, partial(_decoy, "deepspeed", linked))
        yield megatron(name, model, partial(_decoy, "megatron", linked))
    for form in FORMS:
        for file in (model, "common.pt", "mp_rank_00/distrib_optim.pt", "rng.pkl"):
            yield megatron(f"{form} as {file}", file, partial(_megatron, form, file, b"10"))
        for file in ("optimizer.pt", "scheduler.pt", "rng_state.pth", "scaler.pt", "pytorch_model.bin"):
            yield Case(f"{form} as {file}", "trainer", "Trainer", partial(_trainer, form, file), _TRAINER)
    for word in (b"+10", b"1_0", b" " * 500 + b"10\n", b"0000000000010", "\u0661\u0660".encode()):
        write = partial(_megatron, "a zip", model, word)
        yield megatron(f"the iteration {word[-9:]!r}", model, write)


CASES = tuple(_cases())
