"""Messages about the file itself: damaged, cut, of another kind or version, or read by another reader.

The zip reader is `caffe2/serialize/inline_container.cc`, the legacy one `_legacy_load` of
`torch/serialization.py` with Python's unpickler behind it.
"""

from __future__ import annotations

import re

from inspector.containers.formats import format_of
from inspector.diagnose.errors.explanation import Context, ErrorKind, Said, Tie, Tied, Told
from inspector.diagnose.errors.ties import ABOUT_CODE, by_finding
from inspector.diagnose.listing import plain
from inspector.model.agents import loader_of
from inspector.model.findings import Fix
from inspector.model.obstacles import is_gzipped

_WHOLE = (
    "This file was read to its end, and nothing is missing: the error comes from another file, or from "
    "another copy of this one, such as an unfinished download in a cache folder."
)
_FETCH = (
    "Compare the size with the original, and fetch or copy the file again. Folders such as "
    "~/.cache/torch/hub/checkpoints and ~/.cache/huggingface can hold unfinished downloads: delete them "
    "there."
)


_DAMAGE = ("truncated", "invalid-tensor", "torch-refuses", "newer-format", "bad-crc")
_damage = by_finding(*_DAMAGE, no=_WHOLE, in_full=True)


_OBJECT = "file data.pkl"
_WITHOUT_OBJECT = {
    "pt2": "This file is an exported program, which has no data.pkl: torch.load does not read it.",
    "package": "This file is a package, which has no data.pkl: torch.load does not read it.",
}


def _record(context: Context) -> Tied:
    """Return the same of a record that is missing, which archives for other loaders never had."""
    here = _WITHOUT_OBJECT.get(context.checkpoint.format)
    if here is None or _OBJECT not in context.text or context.safety.archive is None:
        return _damage(context)
    advice = f"Load it with {context.safety.archive.loader}, as the printed code does."
    return Tied(fits="yes", here=here, advice=advice, fix=Fix(style="plain"))


def _first_byte(context: Context) -> Tied:
    """Return what a file begins with that has this byte, and whether it is this one."""
    key = context.groups["key"].lower()
    about = next((text for keys, text in _BEGINNINGS if key in keys), "")
    if key == "\\x1f" and is_gzipped(context.checkpoint):
        here = "This file is compressed with gzip, which torch.load does not decompress."
        return Tied(fits="yes", here=here, finding="torch-refuses", advice="Decompress it with gunzip.")
    here = f"This file begins like a checkpoint, not with '{plain(key)}': the error is about another file."
    return Tied(fits="no", here=f"{here} {about}".strip())


_BEGINNINGS = (
    ({"<"}, "A file that begins with '<' is a web page: the link led to a page, not to the file."),
    (
        {"v"},
        "A file that begins with 'v' is usually a Git LFS pointer: fetch the real one with git lfs pull.",
    ),
    ({"{"}, "A file that begins with '{' is JSON: an error message from a server, or a configuration."),
    ({"\\x1f"}, "A file that begins with '\\x1f' is compressed with gzip."),
    ({"\\x89"}, "A file that begins with '\\x89' is HDF5 (Keras) or a PNG image."),
    ({"\\x93"}, "A file that begins with '\\x93' is a NumPy file: read it with numpy.load."),
    ({"g"}, "A file that begins with 'G' is usually GGUF, for llama.cpp."),
    (
        {"p"},
        "A file that begins with 'P' is a zip archive that an old torch does not know, or a truncated one.",
    ),
    (
        {"\\x00", "0"},
        "A file of zeros was allocated on the disk and never written: a download was interrupted.",
    ),
)


def _format(wanted: str, here: str, *, fix: Fix | None = None) -> Tie:
    """Tie a message to files of one format."""

    def tie(context: Context) -> Tied:
        form = context.checkpoint.format
        if form == wanted:
            return Tied(fits="yes", here=here, fix=fix)
        return Tied(
            fits="no", here=f"This file is in the {plain(form)} format: the error is about another file."
        )

    return tie


def _version(context: Context) -> Tied:
    """Compare the version in the message with that of the file."""
    said = context.groups.get("version", "")
    versions = dict(context.checkpoint.versions)
    held = versions.get("version", versions.get(".data/version", ""))
    if held and held == said:
        return Tied(fits="yes", here=f"This file has version {plain(held)} of the zip format.")
    shown = f"of version {plain(held)}" if held else "without such a number"
    return Tied(fits="unknown" if not said else "no", here=f"This file is {shown}.")


def _protocol(context: Context) -> Tied:
    """Compare the protocol in the message with that of the file."""
    protocol = context.checkpoint.needs.protocol
    fits = str(protocol) == context.groups["protocol"]
    here = f"This file was pickled with protocol {protocol}."
    return Tied(
        fits="yes" if fits else "no", here=here if fits else f"{here} The error is about another file."
    )


def _of_other_loader(context: Context) -> Tied:
    """Return whether this file is one that another function loads than torch.load."""
    form = format_of(context.checkpoint.format)
    if form.torch_loads:
        return _damage(context)
    here = f"This file is {form.what}: {loader_of(context.checkpoint)} loads it, and torch.load does not."
    return Tied(fits="yes", here=here, fix=Fix(style="plain"))


def _part_of_checkpoint(told: Told) -> Said:
    """Explain what it means where torch.load itself says so: there is a pickle without the file around it."""
    if told.scene.step != "load" or not any("torch/" in frame.place for frame in told.pasted.frames):
        return Said()
    return Said(
        title="The file is only a part of a checkpoint",
        cause="torch.load found a bare pickle whose tensors are elsewhere: data.pkl out of a checkpoint "
        "that was unpacked, or a checkpoint that was packed again in another way.",
        advice="Pass the whole file as it was saved or downloaded (.pth, .pt), not what an archive program "
        "made of it; download it again without unpacking.",
    )


def _from_process(told: Told) -> bool:
    """Return whether the end of a connection to another process was met, not that of a file."""
    return any(_CONNECTION.search(frame.path) is not None for frame in told.pasted.frames[-1:])


_CONNECTION = re.compile(
    r"multiprocessing[/\\](?:connection|spawn|reduction|queues|managers|synchronize|forkserver)\.py$"
)


def _read_safetensors(told: Told) -> bool:
    """Return whether torch.load read a safetensors file: it is the last that the text names."""
    endings = _ENDING.findall(told.pasted.flat[-_MOST_NEAR:])
    loads = told.scene.step == "load" or any("torch.load(" in frame.code for frame in told.pasted.frames)
    return loads and any(endings[-1:])


def _of_safetensors(told: Told) -> Said:
    """Explain that the file is a safetensors file, where the text shows that."""
    if not _read_safetensors(told):
        return Said()
    return Said(
        title="A safetensors file was read with torch.load",
        cause="torch.load reads pickles, and a .safetensors file is none: the unpickler takes its header "
        "for instructions. The file itself need not be broken.",
        advice="Read it with safetensors.torch.load_file(path), or pass a file of torch.save. In a program "
        "that is not yours, update it or choose a .pt or .ckpt.",
    )


def _cut_pickle(context: Context) -> Tied:
    """Return whether this file is cut; it cannot be where another kind of file was read."""
    told = Told(groups=context.groups, text=context.text, pasted=context.pasted, scene=context.scene)
    if _read_safetensors(told):
        return Tied(fits="no", here="This file is a pickled checkpoint: the error is about another file.")
    return _damage(context)


def _of_script(told: Told) -> Said:
    """Explain that torch.jit.load may have got a file of torch.save."""
    if _SCRIPT.search(told.pasted.flat[-_MOST_NEAR:]) is None:
        return Said()
    return Said(
        cause="torch.jit.load reads the zip archives of torch.jit.save. This file is none: torch.save wrote "
        "it (in the old format), or it was truncated.",
        advice="Try torch.load(path, map_location='cpu') and load the weights into a model that you create. "
        "If that fails, too, fetch the file again.",
    )


_MOST_NEAR = 16 * 1024
_ENDING = re.compile(r"\.(?:(safetensors|sft)|pth|pt|ckpt|bin|pkl)\b", re.IGNORECASE)  # "" for others
_SCRIPT = re.compile(r"torch\.jit\.load|import_ir_module|torch\.jit import load")
_LOAD_KEYS = r"invalid load key, ['\"](?P<key>\\x[0-9a-f]{2}|.)"


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


FILE_ERRORS: tuple[ErrorKind, ...] = (
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
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="safetensors-map-location",
        title="A safetensors file takes a single device as map_location",
        pattern=r"Loading safetensors file with (?:dict|callable) map_location is not supported",
        cause="torch.load hands a .safetensors file to safetensors.torch.load_file, which moves all tensors "
        "to one device; a dictionary or a function says where each goes.",
        advice="torch.load(path, map_location='cpu'), or load_file(path, device='cpu').",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="safetensors-missing",
        title="The package safetensors is not installed",
        pattern=r"load a safetensors file but safetensors is not installed",
        cause="torch.load hands a .safetensors file to the package safetensors, which is not there.",
        advice="python -m pip install safetensors.",
        tie=ABOUT_CODE,
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
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="views-of-two-types",
        title="Tensors of two dtypes share memory, which torch.save cannot write",
        pattern=r"Cannot save multiple tensors or storages that view the same data as different types",
        cause="One tensor is a view of another's bytes as another dtype (x.view(torch.int8)), and both are "
        "saved in one file.",
        advice="Save a copy of one: x.clone().",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="weights-only-variables",
        title="Two environment variables ask for opposite things",
        pattern=r"Only one of '?TORCH_FORCE_WEIGHTS_ONLY_LOAD",
        cause="TORCH_FORCE_WEIGHTS_ONLY_LOAD and TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD are both set.",
        advice="Unset one of them; the first is the safe one.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="zip-directory",
        title="The end of the file is missing",
        pattern=r"failed finding central directory",
        finding="truncated",
        cause="A checkpoint is a zip archive, whose directory is at its end. There is no directory: a "
        "download or a copy was interrupted, the disk was full while saving, or two processes wrote the "
        "file at once.",
        advice=_FETCH,
        tie=_damage,
        say=_of_script,
    ),
    ErrorKind(
        id="not-a-file",
        title="There is no such file",
        pattern=r"is not a checkpoint file\b|failed opening archive|"
        r"open file failed(?: because of errno 2|,)",
        cause="mmcv and torch's zip reader say this of a path at which there is no file (or none that they "
        "may read).",
        advice="Check the path: print(os.path.abspath(path), os.path.isfile(path)).",
    ),
    ErrorKind(
        id="checksum",
        title="The downloaded file is not the one that is expected (its checksum differs)",
        pattern=r"(?:checksum|sha-?256) does not (?:not )?match",
        cause="A download was interrupted, or the cached file is of another version.",
        advice="Delete the cached file and have it downloaded again. If it stays so, update the package "
        "that downloads it.",
    ),
    ErrorKind(
        id="zip-invalid",
        title="The file is not a zip archive, or a damaged one",
        pattern=r"failed reading zip archive: ?(?:not a zip archive|invalid header or archive is corrupted)|"
        r"PytorchStreamReader failed reading zip archive|invalid header or archive is corrupted|"
        r"archive does not contain|BadZipFile",
        finding="truncated",
        cause="torch's zip reader got something else: a file that was truncated or changed in transfer "
        "(text mode changes bytes), a checkpoint in the old format, or a file that is not a checkpoint.",
        advice=_FETCH,
        tie=_damage,
    ),
    ErrorKind(
        id="zip-subdirectory",
        title="The archive was packed by another program",
        pattern=r"file in archive is not in a subdirectory",
        finding="torch-refuses",
        cause="torch expects all records of a checkpoint in one folder of the archive. This archive was "
        "unpacked and packed again, or it contains a checkpoint rather than being one.",
        advice="Unpack it: if a .pt or .pth comes out, load that one. Otherwise fetch the original file.",
        tie=_damage,
    ),
    ErrorKind(
        id="zip-record",
        title="A record of the archive is missing or damaged",
        pattern=r"PytorchStreamReader failed (?:locating|reading|getting)[\w ]{0,20} (?:file|"
        r"archive)[^:]{0,120}|record size \(\d{1,20} bytes\) does not match expected size|"
        r"Expected hasRecord\(['\"]version['\"]\) to be true|"
        r"inline_container\.cc:\d{1,5}\]? ?\.? ?file not found: ?[\w./-]{1,200}",
        finding="truncated",
        cause="The pickle of the checkpoint refers to a record that is not in the archive, or is shorter "
        "than it should be. Or the file is not a checkpoint but another kind of zip archive (TorchScript, "
        "an exported program).",
        advice=_FETCH,
        tie=_record,
    ),
    ErrorKind(
        id="zip-version",
        title="The file has a newer format than this torch can read",
        pattern=r"(?:Attempted|Attempting) to read a PyTorch file with version (?P<version>\d{1,9})|"
        r"kMaxSupportedFileFormatVersion",
        finding="newer-format",
        cause="The format version in the file is higher (or lower) than this version of torch supports.",
        advice="Update torch. Or load the file with a newer torch elsewhere and save it again, with "
        "_use_new_zipfile_serialization=False for a torch before 1.6.",
        tie=_version,
    ),
    ErrorKind(
        id="zip-for-old-torch",
        title="The file was written by torch 1.6 or newer, and this torch is older",
        pattern=r"is a zip archive \(did you mean to use torch\.jit\.load|Only one file\(not dir\) is "
        r"allowed in the zip",
        finding="newer-format",
        cause="Since torch 1.6, torch.save writes zip archives. Older versions take every zip archive for "
        "TorchScript.",
        advice="Update torch to 1.6 or newer. Or load it there and save it with torch.save(..., "
        "_use_new_zipfile_serialization=False). torch.jit.load helps only if the file is TorchScript.",
        tie=_format("zip", "This file is in the zip format of torch 1.6 and newer."),
    ),
    ErrorKind(
        id="unexpected-eof",
        title="The file ends too early",
        pattern=r"unexpected EOF|storage has wrong (?:byte )?size|unexpected end of (?:data|file)",
        finding="truncated",
        cause="torch read the description of the tensors and then found fewer bytes than they need: a "
        "download or a copy was interrupted, the disk was full, or two processes saved to it at once.",
        advice=_FETCH,
        tie=_damage,
        never="codec can",  # text that ends within a letter
    ),
    ErrorKind(
        id="pickle-truncated",
        title="The pickle in the file is truncated",
        pattern=r"pickle data was truncated|unpickling stack underflow|could not find MARK|"
        r"pickle exhausted before end of frame",
        finding="truncated",
        cause="Python's unpickler reached the end of the data in the middle of an object: the file is "
        "truncated, or damaged near its beginning. Or the file is no pickle at all, such as a safetensors "
        "file.",
        advice=_FETCH,
        tie=_cut_pickle,
        say=_of_safetensors,
    ),
    ErrorKind(
        id="empty-file",
        title="The file is empty, or has already been read to its end",
        pattern=r"Ran out of input|EOFError",
        finding="truncated",
        cause="There was nothing to read: the file is empty (a full disk, a job that was killed while "
        "saving), or an open file was passed to torch.load a second time without f.seek(0).",
        advice="Check its size. If it is 0, fetch it again or use the previous checkpoint. In code that "
        "opens the file itself, open it again or call f.seek(0).",
        tie=_damage,
        when=lambda told: not _from_process(told),
    ),
    ErrorKind(
        id="load-key",
        title="The file is not a checkpoint",
        pattern=_LOAD_KEYS,
        finding="not-a-checkpoint",
        findings={"<": "html-page", "v": "lfs-pointer", "\\x1f": "torch-refuses"},
        cause="No checkpoint begins with this byte: '<' is a web page, 'v' a Git LFS pointer, '{' JSON, "
        "'\\x1f' gzip, '\\x00' a download that was allocated and not finished.",
        advice="Check the file's size and its first line. Fetch it through the download link ('raw' on "
        "GitHub, 'resolve' on Hugging Face), or with git lfs pull.",
        tie=_first_byte,
    ),
    ErrorKind(
        id="magic-number",
        title="A pickle that torch.save did not write",
        pattern=r"Invalid magic number; corrupt file",
        finding="not-a-checkpoint",
        cause="The file is a pickle from elsewhere: pickle.dump, joblib, a .pkl file of NumPy arrays.",
        advice="If you trust it, read it with the program that wrote it (pickle.load runs what is in it), "
        "and save its tensors with torch.save.",
        tie=_of_other_loader,
    ),
    ErrorKind(
        id="pickle-load",
        title="The file was written by torch.save and read with pickle.load",
        pattern=r"persistent id instruction was encountered,? but no persistent_load|persistent IDs? in "
        r"protocol",
        cause="torch.save stores the bytes of tensors outside the pickle, where only torch.load finds them.",
        advice="Read it with torch.load(path, map_location='cpu').",
        say=_part_of_checkpoint,
        fix=Fix(style="plain"),
    ),
    ErrorKind(
        id="mmap-format",
        title="mmap=True needs a file in the zip format",
        pattern=r"mmap can only be used with files saved with",
        cause="Memory mapping reads tensors where they lie in a zip archive. The old format of torch "
        "before 1.6 (or _use_new_zipfile_serialization=False) does not support this.",
        advice="Remove mmap=True. Or load the file once and save it again with torch.save.",
        tie=_format("legacy", "This file is in the old format.", fix=Fix(option=("mmap", "False"))),
    ),
    ErrorKind(
        id="mmap-path",
        title="mmap=True needs a path",
        pattern=r"f must be a (?:string filename|file path) in order to use (?:the )?mmap",
        cause="torch.load was called with an open file (or, before torch 2.3, with a pathlib.Path), and it "
        "can map only files that it opens itself.",
        advice="Pass the path as a str: torch.load(str(path), mmap=True).",
    ),
    ErrorKind(
        id="pickle-protocol",
        title="The pickle protocol is newer than this Python",
        pattern=r"unsupported pickle protocol: ?(?P<protocol>\d{1,3})",
        cause="Protocol 5 came with Python 3.8, protocol 4 with 3.4. The file was saved with a higher "
        "protocol than this Python supports.",
        advice="Use a newer Python. Or save the file with the default protocol of torch.save (2).",
        tie=_protocol,
    ),
    ErrorKind(
        id="not-seekable",
        title="torch.load cannot seek in this stream",
        pattern=r"You can only torch\.load from a file that is seekable",
        cause="torch.load needs a seekable file; a download stream or a pipe is not seekable.",
        advice="Read it into memory first: torch.load(io.BytesIO(stream.read())).",
    ),
)
