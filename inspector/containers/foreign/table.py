"""What people open in the belief that it is a checkpoint: told by its first bytes, with the next step.

Most downloads that "do not load" are no damaged checkpoints but something else under their name: the page
that asked for a login, the pointer that Git keeps in place of a large file, a model of another program. The
rows stand in the order in which they are asked; the magic numbers are those of each format's specification.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from inspector.containers.foreign.text import MARKED_TEXTS, Look, Text, read_plain_text
from inspector.errors import CheckpointError, DamagedError, NotACheckpointError

_UNPACK = "unpack it first, and open what is inside"
_CONVERT = "torch cannot read it: look for a PyTorch version of the model, or convert it"
_PICTURE = "this may be a preview or a result that lay beside the checkpoint: look for the .pth or .pt file"
_INSTALL = "this is a program, never run one that came in place of a model: fetch the checkpoint again"
_FETCH = "fetch or copy it again"

_TF_INDEX = re.compile(rb"\0\0[\x06-\x20]\x08[\x01-\x7f](\x10\x01)?\x1a\x02\x08\x01", re.DOTALL)
_ONNX = re.compile(rb"\x08[\x01-\x1f](\x12[\x01-\x40][\w .+-]+[\x1a\x22\x28\x32\x3a\x42]|[\x3a\x42])")

Test = Callable[[Look], bool]


class Lookalike(NamedTuple):
    """One row: how to tell something that is no checkpoint.

    Attributes:
        form: A stable word for it.
        matches: Says whether a file is one.
        what: What it is, with its article.
        remedy: The next step.
        finding: The id of the finding.
    """

    form: str
    matches: Test
    what: str
    remedy: str
    finding: str = "not-a-checkpoint"


def _begins(*magics: bytes) -> Test:
    return lambda look: look.head.startswith(magics)


def _has(pattern: bytes) -> Test:
    """Match a regular expression at the first byte."""
    compiled = re.compile(pattern, re.DOTALL)
    return lambda look: compiled.match(look.head) is not None


def _named(*suffixes: str) -> Test:
    """Go by the file's name, where the bytes say nothing."""
    return lambda look: look.name.lower().endswith(suffixes)


def _is_tar(look: Look) -> bool:
    """Match any tar archive; those that torch 0.1 wrote were matched before."""
    return look.head[257:262] == b"ustar"


def _is_zeros(look: Look) -> bool:
    return bool(look.head) and not look.head.strip(b"\0")


def _row(form: str, matches: Test, what: str, remedy: str, finding: str = "not-a-checkpoint") -> Lookalike:
    return Lookalike(form, matches, what, remedy, finding)


LOOKALIKES: tuple[Lookalike, ...] = (
    # --- packed ---------------------------------------------------------------------------------------------
    _row("tar", _is_tar, "a tar archive", "unpack it with tar xf, and open what is inside"),
    _row("7z", _begins(b"7z\xbc\xaf\x27\x1c"), "a 7z archive", _UNPACK),
    _row("rar", _begins(b"Rar!\x1a\x07"), "a RAR archive", _UNPACK),
    _row("gzip", _begins(b"\x1f\x8b"), "a file packed with gzip", "unpack it with gunzip first"),
    _row("zip-empty", _begins(b"PK\x05\x06"), "an empty zip", _FETCH),
    _row(
        "zip-spanned",
        _begins(b"PK\x07\x08", b"PK00"),
        "one part of a zip that was split",
        "put the parts together first, for instance with zip -s 0",
    ),
    # --- models of other programs ---------------------------------------------------------------------------
    _row(
        "ggml",
        _begins(b"lmgg", b"fmgg", b"tjgg", b"algg"),
        "a GGML model, the forerunner of GGUF",
        "it is for old versions of llama.cpp or whisper.cpp, not for torch",
    ),
    _row(
        "hdf5",
        _begins(b"\x89HDF\r\n\x1a\n"),
        "an HDF5 file, as Keras writes weights",
        "load it with keras.models.load_model, or look inside with h5py",
    ),
    _row("tflite", lambda look: look.head[4:8] == b"TFL3", "a TensorFlow Lite model", _CONVERT),
    # SavedModel{saved_model_schema_version: 1, meta_graphs: {meta_info_def: ...
    _row(
        "tf-savedmodel",
        _has(rb"\x08\x01\x12[\x80-\xff]{0,4}[\x00-\x7f]\x0a"),
        "a TensorFlow SavedModel",
        "load its folder with tf.saved_model.load; torch cannot read it",
    ),
    # BundleHeaderProto{num_shards, version} under the empty key, in a LevelDB table
    _row(
        "tf-checkpoint",
        lambda look: _TF_INDEX.match(look.head) is not None or ".data-0000" in look.name,
        "a part of a TensorFlow checkpoint",
        "load it with tf.train.load_checkpoint by the name without .index or .data-...; torch cannot read it",
    ),
    _row("coreml", _named(".mlmodel"), "a Core ML model", "it is for Apple's Core ML, not for torch"),
    # ModelProto{ir_version, producer_name | graph | opset_import | domain ...
    _row(
        "onnx",
        lambda look: _ONNX.match(look.head) is not None or look.name.lower().endswith(".onnx"),
        "an ONNX model",
        "run it with onnxruntime; torch.load cannot read it",
    ),
    # GraphDef{node: {name, op ...
    _row(
        "tf-graph",
        _has(rb"\x0a[\x80-\xff]{0,3}[\x00-\x7f]\x0a[\x01-\x7f][\w/.-]+\x12[\x01-\x40][A-Z]\w+"),
        "a frozen TensorFlow graph",
        _CONVERT,
    ),
    _row("tensorrt", _begins(b"ftrt", b"ptrt"), "a TensorRT engine", "load it with the TensorRT runtime"),
    _row(
        "torch7",
        _begins(b"\4\0\0\0\1\0\0\0\3\0\0\0V 1"),
        "a model of Torch7, the Lua forerunner of PyTorch",
        "read it with the package torchfile",
    ),
    _row("mxnet", _begins(b"\x12\x01\0\0\0\0\0\0"), "parameters of MXNet", _CONVERT),
    _row("msgpack", _named(".msgpack"), "weights of Flax or another msgpack file", _CONVERT),
    _row(
        "pytorch-preview",
        _begins(b"PYTORCH1"),
        "an archive of a preview of PyTorch 1.0, which no released torch reads",
        "ask for a file that a released version of torch saved",
    ),
    # --- data -----------------------------------------------------------------------------------------------
    _row("parquet", _begins(b"PAR1"), "a Parquet table", "read it with pandas.read_parquet"),
    _row("arrow", _begins(b"ARROW1"), "an Arrow table", "read it with pyarrow or datasets"),
    _row("sqlite", _begins(b"SQLite format 3\0"), "an SQLite database", "open it with sqlite3"),
    # --- pictures, documents, programs ----------------------------------------------------------------------
    _row("png", _begins(b"\x89PNG\r\n"), "a PNG picture", _PICTURE),
    _row("jpeg", _begins(b"\xff\xd8\xff"), "a JPEG picture", _PICTURE),
    _row("gif", _begins(b"GIF87a", b"GIF89a"), "a GIF picture", _PICTURE),
    _row("webp", _has(rb"RIFF.{4}WEBP"), "a WebP picture", _PICTURE),
    _row("mp4", lambda look: look.head[4:8] == b"ftyp", "a video", _PICTURE),
    _row("pdf", _begins(b"%PDF-"), "a PDF document", _PICTURE),
    _row("elf", _begins(b"\x7fELF"), "a program or library for Linux", _INSTALL),
    _row("mz", _has(rb"MZ.{58}"), "a program or library for Windows", _INSTALL),
    _row(
        "mach-o",
        _begins(b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe"),
        "a program for macOS, or Java code",
        _INSTALL,
    ),
    # --- downloads that never ended -------------------------------------------------------------------------
    _row(
        "aria2",
        _named(".aria2"),
        "the notebook of a download by aria2, not the file itself",
        "run aria2c again with -c to finish the download; the checkpoint has the name without .aria2",
        "truncated",
    ),
    _row(
        "partial-download",
        _named(".part", ".crdownload", ".partial", ".download", ".opdownload", ".incomplete"),
        "a download that has not ended",
        "let the download finish, or start it again: the complete file loses this ending of its name",
        "truncated",
    ),
    _row(
        "zeros",
        _is_zeros,
        "a file that begins with nothing but zeros: room was made for it, and the data never came",
        "the download was interrupted, or the disk was full: fetch or copy it again",
        "truncated",
    ),
)


def name_lookalike(look: Look, path: str) -> CheckpointError | None:
    """Return the error that says what a file is instead of a checkpoint, or None if no row knows it.

    Args:
        look: The file's beginning, size and name.
        path: The path as it was given.
    """
    text = next(filter(None, (read(look) for read in MARKED_TEXTS)), None)
    if text is not None:
        return _text_error(text, path)
    row = next((row for row in LOOKALIKES if row.matches(look)), None)
    if row is None:
        text = read_plain_text(look)
        return None if text is None else _text_error(text, path)
    what = f"this is {row.what}"
    if row.finding == "truncated":
        return DamagedError(what, where=path, remedy=row.remedy)
    return NotACheckpointError(what, where=path, remedy=row.remedy, form=row.form, finding=row.finding)


def _text_error(text: Text, path: str) -> NotACheckpointError:
    what = f"this is {text.what}"
    return NotACheckpointError(what, where=path, remedy=text.remedy, form=text.form, finding=text.finding)
