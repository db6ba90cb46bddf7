"""What people open in the belief that it is a checkpoint, with the next step.

Most downloads that "do not load" are no damaged checkpoints but something else under their name: the page
that asked for a login, the pointer that Git keeps in place of a large file, a model of another program, a
folder that a browser made of an archive. They are told by their first bytes, their names, or the names of
their records, in the order of the rows; the magic numbers are those of each format's specification. What a
text says comes from a stranger, and is escaped and cut.
"""

from __future__ import annotations

import os
import os.path
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from inspector.errors import CheckpointError, DamagedError, NotACheckpointError, UnsupportedFormatError
from inspector.quoting import file_word
from inspector.units import cut_text, escape_text, format_nbytes

if TYPE_CHECKING:
    from inspector.containers.source import Source


# --- texts --------------------------------------------------------------------------------------------------


_LOOK_NBYTES = 4096
_MOST_QUOTED = 120
_MOST_DIGITS = 18
_MOST_LINES = 20
_MOST_ERROR_NBYTES = 1 << 16


class Look(NamedTuple):
    """What is known of a file before anybody reads it."""

    head: bytes
    nbytes: int
    name: str


class Text(NamedTuple):
    """What a text turned out to be."""

    form: str  # a stable word for it
    what: str
    remedy: str
    finding: str = "not-a-checkpoint"


Reading = Callable[[Look], Text | None]

_GET_FILE = "download the file itself, by its download link or the site's own command"
_LFS = re.compile(
    rb"version https://(?:git-lfs\.github\.com|hawser\.github\.com)/spec/v1\s"
    rb"(?=.*?oid sha256:(?P<oid>[0-9a-f]{64}))?(?=.*?size (?P<size>\d+))?",
    re.DOTALL,
)
_TITLE = re.compile(rb"<title[^>]*>(.*?)</title", re.DOTALL | re.IGNORECASE)
_MESSAGE = re.compile(rb'"(?:message|error|detail|error_description|reason)"\s*:\s*"((?:[^"\\]|\\.)*)"')
_XML_MESSAGE = re.compile(rb"<(?:Message|Code)>(.*?)</", re.DOTALL)
_YAML_LINE = re.compile(rb"---|%YAML|#|\s*- |\s*[\w./-]+:(\s|$)")
_CONTROL = re.compile("[\0-\x08\x0e-\x1f\x7f-\x9f]")
_OPENVINO = re.compile(rb"(<\?xml[^>]*\?>)?\s*<net\s[^>]*name=")
_OPENVINO_GRAPH = "the graph of an OpenVINO model"
_RUN_OPENVINO = "compile it with openvino.Core().compile_model and the name of its .xml; torch cannot read it"
_LOAD_XGBOOST = "load it with xgboost.Booster(model_file=...); it holds trees, which torch does not run"
_LOAD_LIGHTGBM = "load it with lightgbm.Booster(model_file=...); it holds trees, which torch does not run"
_RESTORE_ORBAX = "restore its folder with orbax.checkpoint, as JAX programs do; torch cannot read it"
_OPEN_ZARR = "open its folder with zarr.open; torch cannot read it"
_RUN_PADDLE = "load it with paddle.inference or paddle.jit.load; torch cannot read it"
_SOURCE = re.compile(rb"#!|import \w|from \w[\w.]* import |def \w|class \w|\"\"\"|# -\*- coding")


def _git_lfs(look: Look) -> Text | None:
    """Name the pointer that Git keeps in place of a large file: git-lfs/docs/spec.md."""
    found = _LFS.match(look.head)
    if found is None:
        return None
    size, oid = found["size"], found["oid"]
    parts = []
    if size is not None and len(size) <= _MOST_DIGITS:
        parts.append(f"the real file has {format_nbytes(int(size))}")
    if oid is not None:
        parts.append(f"its SHA-256 is {oid.decode()}")
    told = f": {', '.join(parts)}" if parts else ""
    return Text(
        "git-lfs",
        f"a Git LFS pointer of {format_nbytes(look.nbytes)} in place of the file{told}",
        "in the repository run git lfs install, then git lfs pull; or download the file from the site",
        "lfs-pointer",
    )


def _other_pointer(look: Look) -> Text | None:
    """Name the pointers of other tools that keep large files apart: git-annex, DVC, Hugging Face's Xet."""
    head = look.head
    if look.nbytes < 1 << 12 and b"annex/objects/" in head[:256]:
        remedy = "in the repository run git annex get with its name"
        return Text("git-annex", "a git-annex pointer in place of the file", remedy, "lfs-pointer")
    if head.startswith((b"outs:\n- md5:", b"outs:\n- hash:", b"md5: ")):
        remedy = "in the repository run dvc pull"
        return Text("dvc", "a DVC pointer in place of the file", remedy, "lfs-pointer")
    if head.startswith((b"# xet version", b"hash = ")):
        remedy = "download the file with hf download"
        return Text("xet", "a Xet pointer in place of the file", remedy, "lfs-pointer")
    return None


def _html(look: Look) -> Text | None:
    start = look.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:256].lower()
    is_html = start.startswith((b"<!doctype html", b"<html", b"<head", b"<script", b"<body"))
    if not is_html and not (start.startswith((b"<?xml", b"<!--")) and b"<html" in look.head.lower()):
        return None
    title = _TITLE.search(look.head)
    titled = f" titled {_quoted(title[1])}" if title is not None and title[1].strip() else ""
    return Text(
        "html",
        f"a web page (HTML){titled}, not the file itself",
        "the site gave a page instead, often a login, a confirmation or an error: open the link in a browser "
        "and see, then download the file itself",
        "html-page",
    )


def _xml(look: Look) -> Text | None:
    start = look.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith((b"<?xml", b"<Error>")):
        return None
    if _OPENVINO.match(start):
        return Text("openvino", _OPENVINO_GRAPH, _RUN_OPENVINO)
    messages = [_quoted(found[1]) for found in _XML_MESSAGE.finditer(look.head[:_MOST_ERROR_NBYTES])][:2]
    if b"<Error>" in look.head:
        said = f" that says {', '.join(messages)}" if messages else ""
        return Text("xml-error", f"an error message of a storage service{said}", _GET_FILE)
    return Text("xml", "an XML document", _GET_FILE)


class JsonLookalike(NamedTuple):
    """One row: how to tell a JSON document by its beginning."""

    form: str
    matches: Callable[[bytes], bool]
    what: str
    remedy: str


def _holds_json(pattern: bytes) -> Callable[[bytes], bool]:
    compiled = re.compile(pattern)
    return lambda start: compiled.search(start) is not None


JSON_LOOKALIKES: tuple[JsonLookalike, ...] = (
    JsonLookalike(
        "xgboost-json", _holds_json(rb'\A\{\s*"learner"\s*:\s*\{'), "an XGBoost model (JSON)", _LOAD_XGBOOST
    ),
    JsonLookalike(
        "lightgbm-json",
        _holds_json(rb'\A\{\s*"name"\s*:\s*"tree",\s*"version"\s*:\s*"v\d'),
        "a LightGBM model as dump_model prints it, which LightGBM itself does not load",
        "save it again with save_model, and load that with lightgbm.Booster(model_file=...)",
    ),
    JsonLookalike(
        "zarr-json", _holds_json(rb'"zarr_format"\s*:\s*[23]'), "a part of a Zarr store", _OPEN_ZARR
    ),
    JsonLookalike(
        "orbax-json", _holds_json(rb'\A\{\s*"tree_metadata"'), "a part of an Orbax checkpoint", _RESTORE_ORBAX
    ),
    JsonLookalike(
        "paddle-json",
        _holds_json(rb'\A\{\s*"base_code"\s*:\s*\{\s*"magic"\s*:\s*"pir"'),
        "the program of a Paddle inference model",
        _RUN_PADDLE,
    ),
)
"""Models of other programs that are JSON."""


def _json(look: Look) -> Text | None:
    start = look.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not re.match(rb'\{\s*["}]|\[\s*[\[{"\d\]-]', start) or not _is_text(look.head):
        return None
    if b'"weight_map"' in start:
        remedy = "open the files that it lists, which lie beside it"
        return Text("shard-index", "the index of a model in several files", remedy)
    row = next((row for row in JSON_LOOKALIKES if row.matches(start)), None)
    if row is not None:
        return Text(row.form, row.what, row.remedy)
    message = _MESSAGE.search(start) if look.nbytes <= _MOST_ERROR_NBYTES else None
    if message is not None:
        what = f"an error message (JSON) that says {_quoted(message[1])}"
        return Text("json-error", what, f"the site refused or did not find the file: {_GET_FILE}")
    return Text("json", "a JSON document", "look for the .pth, .pt or .bin file beside it")


def read_plain_text(look: Look) -> Text | None:
    """Name a text that has no mark of its own: code, a table, a configuration, or its first line."""
    head = look.head
    if not head or not _is_text(head):
        return None
    if _SOURCE.match(head.lstrip()):
        return Text("source", "program code, a text file", _GET_FILE)
    lines = [line for line in head.splitlines()[:_MOST_LINES] if line.strip()]
    if _is_table(lines):
        return Text("csv", "a table in a text file (CSV)", "read it with pandas.read_csv")
    if len(lines) > 1 and all(map(_YAML_LINE.match, lines[:-1])):
        return Text("yaml", "a YAML text, such as a configuration", "look for the checkpoint beside it")
    first = f" that begins with {_quoted(lines[0])}" if lines else ""
    return Text("text", f"a text file{first}", _GET_FILE)


def _is_table(lines: list[bytes]) -> bool:
    if len(lines) < 2:
        return False
    return any(lines[0].count(mark) == lines[1].count(mark) > 0 for mark in (b",", b";", b"\t"))


def _is_text(head: bytes) -> bool:
    for cut in range(4):
        try:
            text = head[: len(head) - cut].decode()
        except UnicodeDecodeError:
            continue
        return not _CONTROL.search(text) and bool(text.strip())
    return False


def _quoted(raw: bytes) -> str:
    text = " ".join(raw.decode("utf-8", "replace").split())
    return f"'{cut_text(escape_text(text), _MOST_QUOTED)}'"


MARKED_TEXTS: tuple[Reading, ...] = (_git_lfs, _other_pointer, _html, _xml, _json)
"""Texts that are told by what they begin with."""


# --- other files --------------------------------------------------------------------------------------------


_UNPACK = "unpack it first, and open what is inside"
_CONVERT = "torch cannot read it: look for a PyTorch version of the model, or convert it"
_PICTURE = "this may be a preview or a result that lay beside the checkpoint: look for the .pth or .pt file"
_INSTALL = "this is a program, never run one that came in place of a model: fetch the checkpoint again"
_FETCH = "fetch or copy it again"

_TF_INDEX = re.compile(rb"\0\0[\x06-\x20]\x08[\x01-\x7f](\x10\x01)?\x1a\x02\x08\x01", re.DOTALL)
_ONNX = re.compile(rb"\x08[\x01-\x1f](\x12[\x01-\x40][\w .+-]+[\x1a\x22\x28\x32\x3a\x42]|[\x3a\x42])")

_VARINT = rb"[\x80-\xff]{0,4}[\x00-\x7f]"
_COREML = re.compile(
    rb"\x08[\x01-\x1f]\x12" + _VARINT + rb"\x0a" + _VARINT + rb"\x0a[\x01-\x7f][\w.]{1,127}"
    rb"(\x12[\x01-\x7f][^\x1a]{1,127})?\x1a[\x00-\x7f][\x0a\x12\x1a\x22\x2a\x32]"
)
_FLAX = re.compile(
    rb"(?:[\x80-\x8f]|\xde..|\xdf....)[\xa1-\xbf\xd9].{1,4000}?(?:\xc7.|\xc8..|\xc9....)\x01\x93[\x90-\x9f\xdc]",
    re.DOTALL,
)
_MATLAB = (b"MATLAB 5.0 MAT-file", b"MATLAB 7.3 MAT-file")
_CASTAGNOLI = 0x82F63B78  # the polynomial of CRC-32C
_ENGINES = (b"ftrt", b"ptrt")

Test = Callable[[Look], bool]


class Lookalike(NamedTuple):
    """One row: how to tell something that is no checkpoint."""

    form: str  # a stable word for it
    matches: Test
    what: str
    remedy: str
    finding: str = "not-a-checkpoint"


def _begins(*magics: bytes) -> Test:
    return lambda look: look.head.startswith(magics)


def _has(pattern: bytes) -> Test:
    compiled = re.compile(pattern, re.DOTALL)
    return lambda look: compiled.match(look.head) is not None


def _named(*suffixes: str) -> Test:
    """Go by the file's name, where the bytes say nothing."""
    return lambda look: look.name.lower().endswith(suffixes)


def _is_tar(look: Look) -> bool:
    """Match any tar archive; those that torch 0.1 wrote were matched before."""
    return look.head[257:262] == b"ustar"


def _is_tensorrt(look: Look) -> bool:
    """Match an engine, also behind the length of a JSON text and that, as Ultralytics writes it."""
    start = 4 + int.from_bytes(look.head[:4], "little") if look.head[4:5] == b"{" else 0
    return look.head[start : start + 4] in _ENGINES


def _is_tfrecord(look: Look) -> bool:
    """Match a record: its length, and a checksum of that (`tensorflow/core/lib/io/record_writer.cc`)."""
    length = look.head[:8]
    if len(look.head) < 12 or int.from_bytes(length, "little") > look.nbytes:
        return False
    crc = (1 << 32) - 1
    for byte in length:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_CASTAGNOLI if crc & 1 else 0)
    crc ^= (1 << 32) - 1
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & ((1 << 32) - 1)
    return masked == int.from_bytes(look.head[8:12], "little")


def _is_zeros(look: Look) -> bool:
    return bool(look.head) and not look.head.strip(b"\0")


LOOKALIKES: tuple[Lookalike, ...] = (
    # --- packed ---------------------------------------------------------------------------------------------
    Lookalike("tar", _is_tar, "a tar archive", "unpack it with tar xf, and open what is inside"),
    Lookalike("7z", _begins(b"7z\xbc\xaf\x27\x1c"), "a 7z archive", _UNPACK),
    Lookalike("rar", _begins(b"Rar!\x1a\x07"), "a RAR archive", _UNPACK),
    Lookalike("gzip", _begins(b"\x1f\x8b"), "a file packed with gzip", "unpack it with gunzip first"),
    Lookalike("zip-empty", _begins(b"PK\x05\x06"), "an empty zip", _FETCH),
    Lookalike(
        "zip-spanned",
        _begins(b"PK\x07\x08", b"PK00"),
        "one part of a zip that was split",
        "put the parts together first, for instance with zip -s 0",
    ),
    # --- models of other programs ---------------------------------------------------------------------------
    Lookalike(
        "ggml",
        _begins(b"lmgg", b"fmgg", b"tjgg", b"algg"),
        "a GGML model, the forerunner of GGUF",
        "it is for old versions of llama.cpp or whisper.cpp, not for torch",
    ),
    Lookalike(
        "hdf5",
        _begins(b"\x89HDF\r\n\x1a\n"),
        "an HDF5 file, as Keras writes weights",
        "load it with keras.models.load_model, or look inside with h5py",
    ),
    Lookalike("tflite", lambda look: look.head[4:8] == b"TFL3", "a TensorFlow Lite model", _CONVERT),
    # Model{specificationVersion, description: {input: {name, type ...
    Lookalike(
        "coreml",
        lambda look: _COREML.match(look.head) is not None or look.name.lower().endswith(".mlmodel"),
        "a Core ML model",
        "it is for Apple's Core ML, not for torch",
    ),
    # flatbuffers with the identifier of schema/program.fbs
    Lookalike(
        "executorch",
        _has(rb".{4}ET[0-9]{2}"),
        "an ExecuTorch program (.pte)",
        "run it with executorch.runtime; torch.load cannot read it",
    ),
    # SavedModel{saved_model_schema_version: 1, meta_graphs: {meta_info_def: ...
    Lookalike(
        "tf-savedmodel",
        _has(rb"\x08\x01\x12[\x80-\xff]{0,4}[\x00-\x7f]\x0a"),
        "a TensorFlow SavedModel",
        "load its folder with tf.saved_model.load; torch cannot read it",
    ),
    # BundleHeaderProto{num_shards, version} under the empty key, in a LevelDB table
    Lookalike(
        "tf-checkpoint",
        lambda look: _TF_INDEX.match(look.head) is not None or ".data-0000" in look.name,
        "a part of a TensorFlow checkpoint",
        "load it with tf.train.load_checkpoint by the name without .index or .data-...; torch cannot read it",
    ),
    # ModelProto{ir_version, producer_name | graph | opset_import | domain ...
    Lookalike(
        "onnx",
        lambda look: _ONNX.match(look.head) is not None or look.name.lower().endswith(".onnx"),
        "an ONNX model",
        "run it with onnxruntime; torch.load cannot read it",
    ),
    # GraphDef{node: {name, op ...
    Lookalike(
        "tf-graph",
        _has(rb"\x0a[\x80-\xff]{0,3}[\x00-\x7f]\x0a[\x01-\x7f][\w/.-]+\x12[\x01-\x40][A-Z]\w+"),
        "a frozen TensorFlow graph",
        _CONVERT,
    ),
    Lookalike("tensorrt", _is_tensorrt, "a TensorRT engine", "load it with the TensorRT runtime"),
    Lookalike(
        "lightgbm", _begins(b"tree\nversion=v", b"tree\r\nversion=v"), "a LightGBM model", _LOAD_LIGHTGBM
    ),
    # UBJSON, and the format before it
    Lookalike(
        "xgboost",
        _begins(b"{L\0\0\0\0\0\0\0\x07learner{", b"binf"),
        "an XGBoost model",
        _LOAD_XGBOOST,
    ),
    Lookalike(
        "matlab",
        lambda look: look.head.startswith(_MATLAB) or look.name.lower().endswith(".mat"),
        "data of MATLAB (.mat)",
        "read it with scipy.io.loadmat, or with h5py where MATLAB 7.3 wrote it",
    ),
    # ProgramDesc{blocks: {idx: 0, parent_idx: -1 ...
    Lookalike(
        "paddle-program",
        _has(rb"\x0a[\x80-\xff]{1,4}[\x00-\x7f]\x08\x00\x10\xff{9}\x01"),
        "the program of a Paddle inference model",
        _RUN_PADDLE,
    ),
    # the version of the tensor, its levels, its version again, and TensorDesc{data_type, dims
    Lookalike(
        "paddle-parameters",
        _has(rb"\0{16}[\x02-\x40]\0{3}\x08[\x00-\x20]\x10"),
        "the parameters of a Paddle inference model",
        _RUN_PADDLE,
    ),
    Lookalike(
        "tfrecord", _is_tfrecord, "records of TensorFlow (TFRecord)", "read them with tf.data.TFRecordDataset"
    ),
    Lookalike("ocdbt", _begins(b"\x0c\xdb\x3a\x2a"), "a part of an Orbax checkpoint", _RESTORE_ORBAX),
    Lookalike(
        "torch7",
        _begins(b"\4\0\0\0\1\0\0\0\3\0\0\0V 1"),
        "a model of Torch7, the Lua forerunner of PyTorch",
        "read it with the package torchfile",
    ),
    Lookalike("mxnet", _begins(b"\x12\x01\0\0\0\0\0\0"), "parameters of MXNet", _CONVERT),
    # a map with an extension of type 1, which is (shape, name of a dtype, bytes): flax/serialization.py
    Lookalike(
        "msgpack",
        lambda look: _FLAX.match(look.head) is not None or look.name.lower().endswith(".msgpack"),
        "weights of Flax or another msgpack file",
        "read it with flax.serialization.msgpack_restore; torch cannot read it",
    ),
    Lookalike(
        "pytorch-preview",
        _begins(b"PYTORCH1"),
        "an archive of a preview of PyTorch 1.0, which no released torch reads",
        "ask for a file that a released version of torch saved",
    ),
    # --- data -----------------------------------------------------------------------------------------------
    Lookalike("parquet", _begins(b"PAR1"), "a Parquet table", "read it with pandas.read_parquet"),
    Lookalike("arrow", _begins(b"ARROW1"), "an Arrow table", "read it with pyarrow or datasets"),
    Lookalike("sqlite", _begins(b"SQLite format 3\0"), "an SQLite database", "open it with sqlite3"),
    # --- pictures, documents, programs ----------------------------------------------------------------------
    Lookalike("png", _begins(b"\x89PNG\r\n"), "a PNG picture", _PICTURE),
    Lookalike("jpeg", _begins(b"\xff\xd8\xff"), "a JPEG picture", _PICTURE),
    Lookalike("gif", _begins(b"GIF87a", b"GIF89a"), "a GIF picture", _PICTURE),
    Lookalike("webp", _has(rb"RIFF.{4}WEBP"), "a WebP picture", _PICTURE),
    Lookalike("mp4", lambda look: look.head[4:8] == b"ftyp", "a video", _PICTURE),
    Lookalike("pdf", _begins(b"%PDF-"), "a PDF document", _PICTURE),
    Lookalike("elf", _begins(b"\x7fELF"), "a program or library for Linux", _INSTALL),
    Lookalike("mz", _has(rb"MZ.{58}"), "a program or library for Windows", _INSTALL),
    Lookalike(
        "mach-o",
        _begins(b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe"),
        "a program for macOS, or Java code",
        _INSTALL,
    ),
    # --- downloads that never ended -------------------------------------------------------------------------
    Lookalike(
        "aria2",
        _named(".aria2"),
        "the notebook of a download by aria2, not the file itself",
        "run aria2c again with -c to finish the download; the checkpoint has the name without .aria2",
        "truncated",
    ),
    Lookalike(
        "partial-download",
        _named(".part", ".crdownload", ".partial", ".download", ".opdownload", ".incomplete"),
        "a download that has not ended",
        "let the download finish, or start it again: the complete file loses this ending of its name",
        "truncated",
    ),
    Lookalike(
        "zeros",
        _is_zeros,
        "a file that begins with nothing but zeros: room was made for it, and the data never came",
        "the download was interrupted, or the disk was full: fetch or copy it again",
        "truncated",
    ),
)


def name_lookalike(look: Look, path: str) -> CheckpointError | None:
    """Return the error that says what a file is instead of a checkpoint, or None if no row knows it."""
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


# --- zips ---------------------------------------------------------------------------------------------------


_MOST_NAMES = 10_000
_MOST_NAME_CHARS = 80
_WEIGHTS = (".pth", ".pt", ".ckpt", ".bin", ".safetensors", ".pth.tar")
_NOTHING = "look for the .pth or .pt file"
_PROGRAM = "this is a program or a library, no model: fetch the checkpoint again"

Names = frozenset[str]


class ZipLookalike(NamedTuple):
    """One row: how to tell a zip by its names."""

    form: str
    matches: Callable[[Names], bool]
    what: str
    remedy: str


def _all_of(*wanted: str) -> Callable[[Names], bool]:
    return lambda names: names.issuperset(wanted)


def _below(folder: str) -> Callable[[Names], bool]:
    return lambda names: any(name.startswith(folder) for name in names)


def _ending(*endings: str) -> Callable[[Names], bool]:
    return lambda names: any(name.endswith(endings) for name in names)


ZIP_LOOKALIKES: tuple[ZipLookalike, ...] = (
    ZipLookalike(
        "keras",
        lambda names: "config.json" in names and any(name.endswith(".weights.h5") for name in names),
        "a Keras model",
        "load it with keras.models.load_model; torch cannot read it",
    ),
    ZipLookalike("docx", _below("word/"), "a Word document", _NOTHING),
    ZipLookalike("xlsx", _below("xl/"), "an Excel workbook", _NOTHING),
    ZipLookalike("pptx", _below("ppt/"), "a PowerPoint presentation", _NOTHING),
    ZipLookalike("opendocument", _all_of("mimetype"), "an OpenDocument file or an e-book", _NOTHING),
    ZipLookalike("apk", _all_of("AndroidManifest.xml"), "an Android app", _PROGRAM),
    ZipLookalike(
        "torchserve",
        _all_of("MAR-INF/MANIFEST.json"),
        "a TorchServe archive (.mar)",
        "unpack it with unzip, and open the .pt or .pth file inside",
    ),
    ZipLookalike("jar", _all_of("META-INF/MANIFEST.MF"), "a Java library", _PROGRAM),
    ZipLookalike("wheel", _ending(".dist-info/METADATA"), "a Python package (wheel)", _PROGRAM),
    ZipLookalike(
        "coreml",
        _ending("/model.mlmodel", ".mlmodel", "com.apple.CoreML/weights/weight.bin"),
        "a Core ML model",
        "it is for Apple's Core ML, not for torch",
    ),
    ZipLookalike(
        "tf-savedmodel",
        _ending("saved_model.pb"),
        "a TensorFlow SavedModel, zipped",
        "unpack it, and load the folder with tf.saved_model.load; torch cannot read it",
    ),
    ZipLookalike(
        "zipped-folder",
        _ending("/data.pkl"),
        "a zip of a folder that torch.save's zip was unpacked to",
        "zip the folder that holds data.pkl itself, without packing, as torch.save does: zip -0 -r",
    ),
)


def name_zip(names: Iterable[str], path: str) -> NotACheckpointError:
    """Return the error that says what a zip is that torch did not write."""
    some = frozenset(islice(names, _MOST_NAMES))
    for row in ZIP_LOOKALIKES:
        if row.matches(some):
            return NotACheckpointError(f"this is {row.what}", where=path, remedy=row.remedy, form=row.form)
    inside = min((name for name in some if name.lower().endswith(_WEIGHTS)), key=len, default=None)
    if inside is not None:
        shown = escape_text(cut_text(inside, _MOST_NAME_CHARS))
        what = f"this is a zip with other files in it, among them {shown}"
        return NotACheckpointError(
            what, where=path, remedy="unpack it, and open the checkpoint inside", form="zip-of-checkpoints"
        )
    return NotACheckpointError(
        "this zip holds no data.pkl, so torch.save did not write it",
        where=path,
        remedy="unpack it, and look for a .pth or .pt file",
        form="zip",
    )


# --- folders ------------------------------------------------------------------------------------------------


UNPACKED = "unpacked"
_PICKLE = "data.pkl"
_PARTS = frozenset({_PICKLE, "version"})
_MOST_SIZES = 200
_MOST_DEEP = 3
_CHECKPOINTS = (".pth", ".pt", ".ckpt", ".bin", ".pth.tar")


FOLDER_LOOKALIKES: tuple[ZipLookalike, ...] = (
    ZipLookalike(
        "savedmodel-folder",
        _ending("saved_model.pb"),
        "a TensorFlow SavedModel",
        "load it with tf.saved_model.load; torch cannot read it",
    ),
    ZipLookalike(
        "orbax-folder",
        lambda names: "_CHECKPOINT_METADATA" in names or {"_METADATA", "manifest.ocdbt"} <= names,
        "an Orbax checkpoint",
        "restore it with orbax.checkpoint, as JAX programs do; torch cannot read it",
    ),
    ZipLookalike(
        "zarr-folder",
        lambda names: not names.isdisjoint({"zarr.json", ".zgroup", ".zarray", ".zmetadata"}),
        "a Zarr store",
        "open it with zarr.open; torch cannot read it",
    ),
    ZipLookalike(
        "coreml-folder",
        lambda names: "coremldata.bin" in names or {"Manifest.json", "Data"} <= names,
        "a Core ML model",
        "it is for Apple's Core ML, not for torch",
    ),
    ZipLookalike("paddle-folder", _ending(".pdmodel", ".pdiparams"), "a Paddle inference model", _RUN_PADDLE),
)
"""Folders of other programs, by the names in them."""


def name_folder(path: str) -> NotACheckpointError:
    """Return the error that says what a folder is, and which file to give instead."""
    names = _names(path)
    inner = path if names >= _PARTS else next((at for at in _folders(path, names) if is_unpacked(at)), None)
    if inner is not None:
        what = "this is an unpacked checkpoint: a folder, where torch.load needs the archive"
        return NotACheckpointError(what, where=path, remedy=pack_again(inner), form=UNPACKED)
    row = _foreign_folder(path, names)
    if row is not None:
        return NotACheckpointError(f"this is {row.what}", where=path, remedy=row.remedy, form=row.form)
    largest = _largest_checkpoint(path, names)
    such_as = f", such as {file_word(largest)}" if largest else ""
    return NotACheckpointError(
        "this folder is no checkpoint of several files",
        where=path,
        remedy=f"give the path of a file in it{such_as}",
    )


def _foreign_folder(path: str, names: frozenset[str]) -> ZipLookalike | None:
    """Return what a folder is, or the only one in it: Orbax numbers the steps of a run."""
    for _ in range(_MOST_DEEP):
        row = next((row for row in FOLDER_LOOKALIKES if row.matches(names)), None)
        inner = _folders(path, names)
        if row is not None or not inner:
            return row
        path, names = inner[0], _names(inner[0])
    return None


def is_part(path: str) -> bool:
    """Return whether a file is the pickle of an unpacked checkpoint."""
    folder, name = os.path.split(path)
    return name == _PICKLE and is_unpacked(folder or os.curdir)


def is_unpacked(folder: str) -> bool:
    """Return whether a folder has the parts of a checkpoint."""
    return _names(folder) >= _PARTS


def pack_again(folder: str) -> str:
    """Return what to do about an unpacked checkpoint: torch wants the folder itself in the archive, too."""
    name = file_word(os.path.basename(os.path.abspath(folder)))  # noqa: PTH100, PTH119 - a text
    return f"fetch it again without unpacking, or pack it from the folder above: zip -0 -r packed.pth {name}"


def _names(folder: str) -> frozenset[str]:
    with suppress(OSError, ValueError), os.scandir(folder) as entries:
        return frozenset(entry.name for entry in islice(entries, _MOST_NAMES))
    return frozenset()


def _folders(path: str, names: frozenset[str]) -> list[str]:
    """Return the only thing in a folder, but for what a Mac leaves there."""
    real = [name for name in names if not name.startswith((".", "__MACOSX"))]
    return [os.path.join(path, name) for name in real] if len(real) == 1 else []  # noqa: PTH118 - a text


def _largest_checkpoint(path: str, names: frozenset[str]) -> str:
    """Return the file that is asked about most probably: weights are larger than what lies beside them."""
    likely = sorted(name for name in names if name.lower().endswith(_CHECKPOINTS))
    paths = [os.path.join(path, name) for name in likely[:_MOST_SIZES]]  # noqa: PTH118 - a text
    return max((at for at in paths if os.path.isfile(at)), key=_nbytes, default="")  # noqa: PTH113 - a text


def _nbytes(path: str) -> int:
    with suppress(OSError):
        return os.path.getsize(path)  # noqa: PTH202 - a text
    return 0


# --- formats that are named, not read -----------------------------------------------------------------------


_INDEX = ".index.json"
# What transformers writes beside the shards of a model.
_INDICES = (f"model.safetensors{_INDEX}", f"pytorch_model.bin{_INDEX}")
# What is in a folder of PyTorch's DCP, and in one of transformers.
_FOLDERS = ((".metadata", "dcp"), ("config.json", "pretrained"))


def name_unopened(path: str, error: CheckpointError) -> tuple[str, str] | None:
    """Return the format of what was refused, as `show --json` names it, and the path that its loader wants.

    A folder of Hugging Face's whose weights are one file is `pretrained`.
    """
    if isinstance(error, UnsupportedFormatError):
        return (error.form, path) if error.form else None
    if path.endswith(_INDEX) and os.path.isfile(path):  # noqa: PTH113 - the path goes into code as it was given
        return "sharded", path
    for name in _INDICES:
        if _holds(path, name):
            return "sharded", os.path.join(path, name)  # noqa: PTH118 - as above
    return next(((form, path) for name, form in _FOLDERS if _holds(path, name)), None)


def _holds(path: str, name: str) -> bool:
    return os.path.isfile(os.path.join(path, name))  # noqa: PTH113, PTH118 - as above


def refuse_lookalike(source: Source) -> None:
    """Raise what says what a file is instead of a checkpoint, if that is known."""
    head = source.read_upto(0, _LOOK_NBYTES)
    if not head:
        raise NotACheckpointError(
            "the file is empty", where=source.path, remedy="fetch or copy it again", form="empty"
        )
    name = os.path.basename(source.path)  # noqa: PTH119 - the path is a text, maybe of no file name at all
    error = name_lookalike(Look(head, source.file_nbytes, name), source.path)
    if error is None:
        return
    error.what += packed_with(source)
    raise error


def name_weights(path: str, graph: bytes) -> NotACheckpointError | None:
    """Return that a file holds the weights of OpenVINO, which have no mark, by the graph beside them."""
    if _OPENVINO.match(graph) is None:
        return None
    what = "this holds the weights of an OpenVINO model"
    return NotACheckpointError(what, where=path, remedy=_RUN_OPENVINO, form="openvino-weights")


def packed_with(source: Source) -> str:
    """Return how a file is compressed as a whole, as the end of a sentence; nothing where it is not."""
    return f", packed with {source.packing}" if source.gzipped else ""
