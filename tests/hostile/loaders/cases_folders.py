"""Folders of DeepSpeed, Megatron-LM and trainers, whose loaders find files by patterns of their own.

The essential lines of the loaders are played, each with its place: what they glob, and how they load it.
"""

from __future__ import annotations

import io
import pickle
import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.builders import zips
from tests.builders.pickles import call, proto, stream, text
from tests.hostile.loaders.case import MARK, Case, payload

_EVIL = call("builtins.eval", text(f"__import__('os').makedirs({MARK!r}, exist_ok=True)"))
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


def _zip(*names: str, evil: int = 0) -> bytes:
    return zips.build_zip(
        *(
            zips.Record(name=f"archive/{name}", data=stream(proto(), _EVIL if number == evil else b"}"))
            for number, name in enumerate(names)
        ),
        zips.Record(name="archive/version", data=b"3\n"),
        zip64=True,
    )


def _tar() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name in ("storages", "tensors", "pickle"):
            info = tarfile.TarInfo(name)
            data = payload() if name == "storages" else pickle.dumps(0)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return made.getvalue()


FORMS: dict[str, Callable[[], bytes]] = {
    "a zip": partial(_zip, "data.pkl"),
    "a zip with two": partial(_zip, "data.pkl", "data.pkl"),
    "DATA.PKL": partial(_zip, "DATA.PKL", "data.pkl"),
    "a plain pickle": payload,
    "a pickle of protocol 0": partial(payload, 0),
    "a pickle of protocol 5": partial(payload, 5),
    "a tar file": _tar,
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
    deepspeed = _DEEPSPEED.format(patterns=_ENDINGS)
    for form in FORMS:
        for name in _NAMES:
            write = partial(_deepspeed, form, name, "")
            yield Case(f"{form} as {name}", "deepspeed", "zero_to_fp32", write, deepspeed)
    for tag in list(_TAGS)[1:]:
        for name in _NAMES:
            write = partial(_deepspeed, "a zip", name, tag)
            yield Case(f"a zip as {name}{tag}", "deepspeed", "zero_to_fp32", write, deepspeed)
    for place in ("a link", "a linked tag", "a tag outside", "an absolute tag"):
        yield Case(place, "deepspeed", "zero_to_fp32", partial(_deepspeed_link, place), deepspeed)
    for linked in (False, True):
        name = f"a tag file {'through a link' if linked else 'beside a decoy'}"
        yield Case(name, "deepspeed", "zero_to_fp32", partial(_decoy, "deepspeed", linked), deepspeed)
        load = _MEGATRON.format(files=("mp_rank_00/model_optim_rng.pt",))
        yield Case(name, "megatron", "load_checkpoint", partial(_decoy, "megatron", linked), load)
    for form in FORMS:
        for name in ("mp_rank_00/model_optim_rng.pt", "common.pt", "mp_rank_00/distrib_optim.pt", "rng.pkl"):
            load = _MEGATRON.format(files=(name,))
            yield Case(
                f"{form} as {name}",
                "megatron",
                "load_checkpoint",
                partial(_megatron, form, name, b"10"),
                load,
            )
    for word in (b"+10", b"1_0", b" " * 500 + b"10\n", b"0000000000010", "\u0661\u0660".encode()):
        name = "mp_rank_00/model_optim_rng.pt"
        load = _MEGATRON.format(files=(name,))
        yield Case(
            f"the iteration {word[-9:]!r}",
            "megatron",
            "load_checkpoint",
            partial(_megatron, "a zip", name, word),
            load,
        )
    for form in FORMS:
        for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth", "scaler.pt", "pytorch_model.bin"):
            yield Case(f"{form} as {name}", "trainer", "Trainer", partial(_trainer, form, name), _TRAINER)


CASES = tuple(_cases())
