"""Messages about devices that are not there, while `torch.load` restores storages.

The texts are those of `torch/serialization.py` from 1.0 to 2.13, of `torch/cuda/__init__.py`, and of
`c10::Device`'s parser; `target.restore` has the rules by which torch comes to them.
"""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import Context, ErrorKind, Said, Tied, Told
from inspector.diagnose.errors.ties import devices_of, fix_for, paths_on
from inspector.diagnose.listing import listed, plain
from inspector.model.roles.device_types import DEVICE_TYPES
from inspector.model.roles.devices import is_accelerator
from inspector.units import format_count

_BY_KIND = {row.name: row.missing for row in DEVICE_TYPES.values()}
_INDEX_BY_KIND = {row.name: row.out_of_range or row.missing for row in DEVICE_TYPES.values()}
_KIND = r"(?P<kind>[a-z][a-z0-9]{1,20})"
_TO_CPU = (
    "Load it with map_location='cpu' and move the model afterwards, or export a copy with its tensors on "
    "the CPU. Nothing is lost: the device is only a label on each tensor."
)


_NOT_FROM_HERE = (
    "Look at the last lines of the traceback: which line asks for the device, and which file is loaded "
    "there? Take .cuda(), .to(...) or map_location out of that line, or open that file here. If the machine "
    "should have the device, checkpoint-inspector target explains why torch does not see it, and which "
    "build of torch to install."
)
_NESTED = (
    " It is loaded by pickle.load, joblib or np.load: each tensor in such a pickle is a small file of "
    "torch's of its own (torch.storage._load_from_bytes), and no map_location reaches it."
)
_NESTED_ADVICE = (
    "Best save it again with torch.save, or as NumPy arrays, where the device is. To read it here, map it "
    "before pickle.load: torch.storage._load_from_bytes = lambda b: torch.load(io.BytesIO(b), "
    "map_location='cpu', weights_only=False) (only for files that you trust: this runs what is in them, as "
    "pickle.load does)."
)
_SCRIPT_ADVICE = "Load it with torch.jit.load(path, map_location='cpu') and move no input to cuda."
_REASONS = (
    ("found no nvidia driver", "no NVIDIA driver is installed"),
    ("driver on your system is too old", "the NVIDIA driver is too old for this build of torch"),
    ("not compiled with cuda", "torch is a CPU-only build"),
    ("driver/library version mismatch", "the driver was updated and is not loaded yet: restart"),
    ("error 804", "the driver does not fit the CUDA libraries of the container"),
    ("cuda unknown error", "the driver does not answer, or CUDA_VISIBLE_DEVICES was set too late"),
    ("can't initialize nvml", "the NVIDIA driver does not answer"),
)


def _unavailable(told: Told) -> Said:
    """Explain what is known of the reason, and what to do where no map_location can be given."""
    row = "Saved on a device that torch cannot find on this machine"
    warned = " ".join(told.pasted.warnings).lower()
    reason = next((text for words, text in _REASONS if words in warned), "")
    cause = f"{_UNAVAILABLE} The warning above says why: {reason}." if reason else ""
    if told.scene.step == "nested-load":
        return Said(title=row, cause=f"{cause or _UNAVAILABLE}{_NESTED}", advice=_NESTED_ADVICE)
    if told.scene.step == "script-load":
        return Said(title=row, cause=cause, advice=_SCRIPT_ADVICE)
    return Said(cause=cause)


def _unavailable_index(told: Told) -> Said:
    """Explain what to do where no map_location can be given."""
    if told.scene.step == "nested-load":
        return Said(cause=f"{_INDEX}{_NESTED}", advice=_NESTED_ADVICE)
    return Said()


_INDEX = (
    "GPUs are numbered from 0, and the file was saved on an index that this process does not see: the "
    "machine has fewer GPUs, or CUDA_VISIBLE_DEVICES hides some of them."
)
_UNAVAILABLE = (
    "A checkpoint records the device that each tensor was saved on, and torch.load puts it back there. This "
    "torch finds no such device: there is none, its driver is missing, or the installed torch is a CPU-only "
    "build."
)


def _on_kind(context: Context) -> Tied:
    """Find the tensors that were saved on devices of the kind that the message names."""
    kind = context.groups.get("kind", "").lower() or "cuda"
    devices = devices_of(context, kind)
    if not devices:
        return _none_on(context, kind)
    paths = paths_on(context, devices)
    here = f"{format_count(len(paths), 'tensor')} of this file were saved on {listed(devices)}."
    if context.target is not None and all(device.endswith("cpu") for device in context.target.devices):
        here += f" The target ({context.target.label}) has no such device."
    return Tied(fits="yes", here=here, paths=paths, fix=fix_for(context, devices))


def _none_on(context: Context, kind: str) -> Tied:
    """Acquit a file without such a device, unless something in it is not listed, or stays where it was."""
    hidden = next((context.findings[id_] for id_ in _UNLISTED if id_ in context.findings), None)
    if hidden is not None:
        here = f"No tensor that is listed is on a {plain(kind)} device. But: {hidden.title}."
        return Tied(fits="unknown", here=here)
    saved = sorted({tensor.device for tensor in context.checkpoint.tensors})
    where = f" (they are on {listed(saved)})" if saved else ""
    here = (
        f"No tensor of this file is on a {plain(kind)} device{where}: the error comes from another file, or "
        "from your own code, such as model.cuda() or map_location."
    )
    return Tied(fits="no", here=here, advice=_NOT_FROM_HERE)


_UNLISTED = ("hidden-device", "traced-device", "nested-pickle", "nested-checkpoint")


def _on_index(context: Context) -> Tied:
    """Find the tensors on the very device that the message counts."""
    kind, index = context.groups["kind"].lower(), context.groups["index"]
    device = f"{kind}:{index}"
    paths = paths_on(context, [device])
    others = [name for name in devices_of(context, kind) if name != device]
    if paths:
        here = f"{format_count(len(paths), 'tensor')} of this file were saved on {device}."
        if others:
            here += f" Others are on {listed(others)}: map all of them at once to avoid the next error."
        every = [device, *others]
        return Tied(fits="yes", here=here, paths=paths, fix=fix_for(context, sorted(every)))
    if others:
        here = (
            f"No tensor of this file is on {plain(device)}; they are on {listed(others)}. The error comes "
            "from another file, or map_location asked for that index."
        )
        return Tied(fits="no", here=here)
    return _none_on(context, kind)


_TOO_OLD = re.compile(
    r"driver on your system is too old(?: \(found version (?P<found>\d{4,6})\))?|CUDA driver version is "
    r"insufficient|cuda runtime error \(35\)",
    re.IGNORECASE,
)


def _driver(told: Told) -> Said:
    """Explain that there is a driver and it is too old, where the message says that."""
    old = _TOO_OLD.search(told.text)
    if old is None:
        return Said()
    number = int(old["found"] or 0)
    knows = f" It supports CUDA {number // 1000}.{number % 1000 // 10} at most." if number else ""
    none = "" if number else " (With no driver loaded at all CUDA says the same: see what nvidia-smi shows.)"
    return Said(
        title="The NVIDIA driver is older than this build of torch needs",
        cause=f"torch was built for a newer CUDA than the installed driver supports.{knows}{none}",
        advice="Update the NVIDIA driver, or install a build of torch for an older CUDA: nvidia-smi shows at "
        "its top right the newest CUDA that the driver takes, and pytorch.org has the builds. Until then "
        "load with map_location='cpu' and move nothing to cuda.",
    )


def _tag_said(told: Told) -> Said:
    """Explain how a device is spelled that torch has under another name."""
    tag = told.groups.get("tag", "").strip().lower()
    if not _GPU_TAG.fullmatch(tag):
        return Said()
    return Said(
        title="A misspelled device name",
        cause=f"torch has no device called {plain(tag)}: NVIDIA and AMD GPUs are cuda, cuda:0 and so on, "
        "Apple's mps. The name comes from map_location (or an option such as --device), or from the "
        "program that wrote the file.",
        advice="Write map_location='cuda:0' (--device cuda:0), or 'cpu'.",
    )


_GPU_TAG = re.compile(r"gpu:?\d{0,3}|cuda\d{1,3}|cuda-\d|\d{1,3}")


def _without(context: Context) -> Tied:
    """Find the tensors on the device that this torch was built without."""
    kind = next(
        (context.groups[key] for key in ("kind", "kind2", "linked") if context.groups.get(key)), "cuda"
    )
    devices = devices_of(context, kind.lower())
    if not devices:
        return _none_on(context, kind.lower())
    paths = paths_on(context, devices)
    here = f"This file was saved on {listed(devices)}, which torch.load asks for again."
    return Tied(fits="yes", here=here, paths=paths, fix=fix_for(context, devices))


def _with_tag(context: Context) -> Tied:
    """Find the tensors with the tag that torch does not know."""
    tag = (context.groups.get("tag") or context.groups.get("spelled", "")).strip()
    if not tag:
        return _any_accelerator(context)
    paths = paths_on(context, [tag])
    if paths:
        return Tied(
            fits="yes",
            here=f"{format_count(len(paths), 'tensor')} of this file carry the tag {plain(tag)}.",
            paths=paths,
            fix=fix_for(context, [tag]),
        )
    here = f"No tensor of this file carries the tag {plain(tag)}: it was the argument map_location, or the"
    return Tied(fits="no", here=f"{here} error comes from another file.")


def _any_accelerator(context: Context) -> Tied:
    """Find all that is not on the CPU."""
    devices = sorted({row.device for row in context.checkpoint.storages if is_accelerator(row.device)})
    if not devices:
        return _none_on(context, "cuda")
    paths = paths_on(context, devices)
    here = f"This file was saved on {listed(devices)}, which torch.load asks for again."
    return Tied(fits="yes", here=here, paths=paths, fix=fix_for(context, devices))


DEVICE_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="device-unavailable",
        title="Saved on a device that torch cannot find on this machine",
        pattern=rf"Attempting to deserialize object on an? '?{_KIND}'? ?device but "
        rf"torch\.[a-z]+\.is_available",
        findings=_BY_KIND,
        finding="unknown-device",
        cause=_UNAVAILABLE,
        advice=_TO_CPU + " If there is a GPU, checkpoint-inspector target explains why torch does not see "
        "it.",
        tie=_on_kind,
        say=_unavailable,
    ),
    ErrorKind(
        id="device-index",
        title="Saved on a GPU index that this machine does not have",
        pattern=rf"Attempting to deserialize object on '?{_KIND}'? ?device (?P<index>\d{{1,5}}) but "
        rf"torch\.[a-z]+\.device_count",
        findings=_INDEX_BY_KIND,
        finding="unknown-device",
        cause=_INDEX,
        advice="Map it to a GPU that is there: map_location={'cuda:1': 'cuda:0'}, with one entry for each "
        "index in the file, or map_location='cuda:0' for all of them.",
        tie=_on_index,
        say=_unavailable_index,
    ),
    ErrorKind(
        id="device-tag-unknown",
        title="A device name that torch cannot restore",
        pattern=r"don'?t know how to (?:restore|determine) data location of [\w.]{1,80} ?"
        r"(?:\(tagged with (?P<tag>[^)]{0,80})\))?",
        finding="unknown-device",
        cause="This torch does not know the name: it belongs to a plug-in that is not imported (torch_npu, "
        "torch_xla, DirectML), to a newer torch (mps needs 1.13), or it is spelled in a way that torch "
        "refuses. cpu and meta take no index: cpu:0 is refused.",
        advice=_TO_CPU,
        tie=_with_tag,
        say=_tag_said,
    ),
    ErrorKind(
        id="device-module-missing",
        title="The plug-in for the file's device is not loaded",
        pattern=rf"The {_KIND} device module is not registered",
        finding="unknown-device",
        cause="The file was saved on a device that torch supports only through its vendor's plug-in, such "
        "as habana_frameworks for hpu.",
        advice=_TO_CPU + " On a machine with that device, import its plug-in before torch.load.",
        tie=_on_kind,
    ),
    ErrorKind(
        id="device-not-recognized",
        title="This build of torch has no such device",
        pattern=rf"Storage device not recognized: {_KIND}",
        findings=_BY_KIND,
        finding="unknown-device",
        cause="The file was saved on an Apple GPU (mps), which only torch for macOS supports.",
        advice=_TO_CPU,
        tie=_on_kind,
    ),
    ErrorKind(
        id="device-string",
        title="A misspelled device name",
        pattern=r"Invalid device string: '?(?P<tag>[^'\s]{0,80})|"
        r"device type at start of device string: ?(?P<spelled>[\w:]{0,80})|Invalid device, must be cuda "
        r"device",
        finding="unknown-device",
        cause="A device is written as a type, or as a type and an index with a colon between them: cuda:0, "
        "cpu, mps, xpu:1.",
        advice="Correct the name where it is written, usually in map_location or in .to(...): write 'cuda' "
        "for 'gpu', and 'cuda:0' for 'cuda0'.",
        tie=_with_tag,
    ),
    ErrorKind(
        id="torch-without-device",
        title="This torch was built without support for the device",
        pattern=rf"Torch (?:is )?not compiled with {_KIND} enabled|not available\. Torch not compiled with "
        rf"{_KIND.replace('kind', 'kind2')}|PyTorch is not linked with support for "
        rf"(?P<linked>\w+)",
        findings=_BY_KIND,
        finding="unknown-device",
        cause="The installed build of torch cannot use this device at all, for example because it is "
        "CPU-only ('+cpu' in torch.__version__). A GPU and its driver make no difference then.",
        advice="Install a build for the device (the selector on pytorch.org gives the command), or stay on "
        "the CPU: map_location='cpu', and no .cuda() in the code.",
        tie=_without,
    ),
    ErrorKind(
        id="no-driver",
        title="torch can use CUDA, but finds no working NVIDIA driver or GPU",
        pattern=r"Found no NVIDIA driver|No CUDA GPUs are available|NVIDIA driver on your system is too old|"
        r"You requested gpu|CUDAAccelerator'? can ?not run|No supported gpu backend found|CUDA unavailable, "
        r"invalid device|"
        r"couldn'?t communicate with the NVIDIA driver|NVIDIA-SMI has failed|Can'?t initialize NVML|"
        r"cuda runtime error \((?:35|38|100)\)|HIP GPUs are available|no ROCm-capable device|"
        r"XPU device (?:count is zero|is not available)|No XPU devices are available|MPS is not available|"
        r"no CUDA-capable device is detected|CUDA driver version is insufficient",
        finding="cuda-unavailable",
        cause="The file, or your code, asks for a CUDA device. The driver is missing or too old, the GPU "
        "is not passed through to the container, or CUDA_VISIBLE_DEVICES hides it.",
        advice="checkpoint-inspector target shows which of these it is. To go on without a GPU, load with "
        "map_location='cpu' and move nothing to cuda.",
        tie=_any_accelerator,
        say=_driver,
    ),
    ErrorKind(
        id="invalid-ordinal",
        title="A GPU index that does not exist",
        pattern=r"invalid device ordinal|AssertionError: Invalid device id|Invalid device argument|cuda "
        r"runtime error \(10\)|"
        r"CUDA error: invalid device\b|Expected a cuda device, but got|device \d{1,3} is not visible|"
        r"Invalid CUDA '?(?:--)?device=? ?[\d,]{1,20}'? requested",
        finding="cuda-index-out-of-range",
        cause="Something asked CUDA for a GPU index that this process does not see.",
        advice="torch.cuda.device_count() is the number of GPUs; indices run from 0 to one less, so start "
        "as many processes (torchrun --nproc_per_node) as there are GPUs. CUDA_VISIBLE_DEVICES renumbers "
        "them: with CUDA_VISIBLE_DEVICES=2 the only GPU is cuda:0.",
        tie=_any_accelerator,
    ),
    ErrorKind(
        id="map-location-torchscript",
        title="map_location cannot be a dictionary for a TorchScript file",
        pattern=r"map_location should be either None, string or torch\.device",
        cause="torch.load passes a TorchScript file on to torch.jit.load, which accepts a single device "
        "only.",
        advice="Pass one device: torch.jit.load(path, map_location='cpu').",
    ),
    ErrorKind(
        id="jit-device",
        title="torch.jit.load cannot load to this device",
        pattern=r"supported devices include CPU, CUDA.{0,30}however got \w{1,12}",
        cause="torch.jit.load maps only to the CPU, CUDA and a few other devices, and map_location names "
        "another one, such as mps.",
        advice="Load it on the CPU and move it: torch.jit.load(path, map_location='cpu').to('mps').",
    ),
    ErrorKind(
        id="map-location-callable",
        title="map_location cannot be a function for this file",
        pattern=r"Callable map_location not supported with",
        cause="The file holds tensors that name their own device (XLA tensors, tensor subclasses), and "
        "torch calls such a function for storages only.",
        advice="Pass a device instead of a function, such as map_location='cpu'.",
    ),
)
