"""Messages of readers about what a file contains: safetensors, and pickles that torch did not write."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import Context, ErrorKind, Tied
from inspector.diagnose.errors.ties import about_code
from inspector.diagnose.listing import plain

_CODE = about_code("Nothing in this file decides it: it is about the call.")


def _tensor_of_name(context: Context) -> Tied:
    """Return whether this file has the tensor that was not found."""
    name = context.groups["name"].strip("'\". ")
    held = [tensor.path for tensor in context.checkpoint.tensors if name in {str(k) for k in tensor.keys}]
    if held:
        here = f"{plain(name)} is in this file: the error comes from another file."
        return Tied(fits="no", here=here, paths=held)
    near = [tensor.path for tensor in context.checkpoint.tensors if tensor.path.endswith(name)]
    if near:
        here = f"In this file it is called {plain(near[0])}: the names have another prefix."
        return Tied(fits="yes", here=here, paths=near)
    return Tied(fits="yes", here=f"This file has no tensor {plain(name)}.")


SERIALIZED_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="safetensors-key",
        title="The safetensors file has no tensor of that name",
        pattern=r"File does not contain tensor (?P<name>[^\s,;]{1,300})",
        cause="The code asks for tensors by name, and this one is not in the file: it belongs to another "
        "kind of model or adapter (SD 1.5 and SDXL, LoRA and full weights), or its names have a prefix.",
        advice="Compare the names in the file with those that the code expects, and use a file for that "
        "model.",
        tie=_tensor_of_name,
    ),
    ErrorKind(
        id="safetensors-mmap",
        title="The file system does not let files be mapped into memory",
        pattern=r"No such device \(os error 19\)|\[Errno 19\] No such device",
        cause="safetensors (and mmap=True of torch.load) map the file into memory, which some file systems "
        "do not offer: network drives, folders that a virtual machine or a container shares.",
        advice="Copy the file to a local disk, or read it whole: safetensors.torch.load(open(path, "
        "'rb').read()), torch.load(path, mmap=False).",
        tie=_CODE,
    ),
    ErrorKind(
        id="safetensors-map-location",
        title="A safetensors file takes a single device as map_location",
        pattern=r"Loading safetensors file with (?:dict|callable) map_location is not supported",
        cause="torch.load hands a .safetensors file to safetensors.torch.load_file, which moves all tensors "
        "to one device; a dictionary or a function says where each goes.",
        advice="torch.load(path, map_location='cpu'), or load_file(path, device='cpu').",
        tie=_CODE,
    ),
    ErrorKind(
        id="safetensors-missing",
        title="The package safetensors is not installed",
        pattern=r"load a safetensors file but safetensors is not installed",
        cause="torch.load hands a .safetensors file to the package safetensors, which is not there.",
        advice="python -m pip install safetensors.",
        tie=_CODE,
    ),
    ErrorKind(
        id="import-first",
        title="A module of torch has to be imported before the file is loaded",
        pattern=r"torch\.[\w.]{1,40}'{0,2} must be imported to load",
        cause="weights_only=True builds distributed and jagged tensors only where the module that defines "
        "them was imported already; it imports nothing itself.",
        advice="Put import torch.distributed.tensor (or import torch._dynamo, torch.nested) before "
        "torch.load.",
    ),
    ErrorKind(
        id="pickle-not-of-torch",
        title="The file was pickled in a way that torch.load does not read",
        pattern=r"Unknown typename for persistent_load|saved_id must be a tuple|Unknown saved id type|"
        r"pickle storage type .{1,60} is not recognized|Invalid protocol version: |"
        r"storage key .{1,40} not found in deserialized_objects|unsupported persistent id",
        cause="torch.load found a pickle that refers to something else than storages of torch, or is of "
        "another generation: another program wrote it, or it is damaged.",
        advice="Read it with the program that wrote it, and save the tensors with torch.save there.",
    ),
    ErrorKind(
        id="save-arguments",
        title="torch.save got its arguments in the wrong order",
        pattern=r"expected 'f' to be string, path, or a file-like object with a 'write' attribute|"
        r"\bsave\(\) missing \d required positional arguments?: 'f'",
        cause="torch.save takes the object first and the path second; the path is missing, or is something "
        "that cannot be written to.",
        advice="torch.save(model.state_dict(), 'model.pth').",
        tie=_CODE,
    ),
    ErrorKind(
        id="views-of-two-types",
        title="Tensors of two dtypes share memory, which torch.save cannot write",
        pattern=r"Cannot save multiple tensors or storages that view the same data as different types",
        cause="One tensor is a view of another's bytes as another dtype (x.view(torch.int8)), and both are "
        "saved in one file.",
        advice="Save a copy of one: x.clone().",
        tie=_CODE,
    ),
    ErrorKind(
        id="weights-only-variables",
        title="Two environment variables ask for opposite things",
        pattern=r"Only one of '?TORCH_FORCE_WEIGHTS_ONLY_LOAD",
        cause="TORCH_FORCE_WEIGHTS_ONLY_LOAD and TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD are both set.",
        advice="Unset one of them; the first is the safe one.",
        tie=_CODE,
    ),
)
