"""Messages about where a file is, how it was opened, and about writing one."""

from __future__ import annotations

import posixpath

from inspector.diagnose.errors.explanation import Context, ErrorKind, Said, Tied, Told
from inspector.diagnose.errors.ties import ABOUT_CODE, about_code
from inspector.diagnose.listing import plain

_SAVED = about_code(
    "Nothing in this file decides it: it is about the object that is being saved, or the place."
)


def _name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _named(context: Context) -> Tied:
    """Compare the path of the message with the file that is open."""
    path = next(
        (context.groups[key] for key in ("path", "path2", "path3", "path4") if context.groups.get(key)), ""
    )
    said, held = _name(path), _name(context.checkpoint.path)
    if said and said == held:
        here = (
            f"This file has that name, {plain(held)}, and can be read here: the script looks for it in "
            "another folder."
        )
        return Tied(fits="unknown", here=here)
    return Tied(
        fits="no", here=f"This file, {plain(held)}, is there and is a file: the error is about another path."
    )


def _permission(told: Told) -> bool:
    """Return whether a refused access may be that of a folder: Windows says so of folders."""
    path = told.groups.get("path", "")
    return told.scene.step in {"load", "script-load", "nested-load", "save", ""} and bool(path)


def _denied(told: Told) -> Said:
    """Name a folder first where the path looks like one; only Windows denies access to folders."""
    path = told.groups.get("path", "")
    if path.startswith("/"):
        return _NO_RIGHT
    ending = posixpath.splitext(path.rstrip("/"))[1].lower()
    return _MAYBE_FOLDER if ending in _ENDINGS and not path.endswith("/") else Said()


_NO_RIGHT = Said(
    title="Access to the file is denied",
    cause="You have no right to read or write at that path: it belongs to another user, often to root.",
    advice="Look at its rights with ls -l, and change them (chown, chmod), or use a folder of your own.",
)
_MAYBE_FOLDER = Said(
    title="Access to the file is denied",
    cause="Windows denies access to folders in this way, also where a folder is named like a file (an "
    "archive that was unpacked). Otherwise another program holds the file, or you have no right to read it.",
    advice="Look whether the path is a folder, and pass the file in it. Otherwise check the rights of the "
    "file, and that no other program has it open.",
)
_ENDINGS = frozenset({".pt", ".pth", ".ckpt", ".bin", ".tar", ".pkl", ".safetensors", ".t7", ".model"})


PATH_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="folder-given",
        title="A folder was given instead of a file",
        pattern=r"IsADirectoryError|\[Errno 21\]|Is a directory: ?|"
        r"\[Errno 13\] Permission denied: ?['\"](?P<path>[^'\"]{1,400})",
        cause="torch.load opens one file, and the path is a folder: the folder with the checkpoints was "
        "given, or a browser or archive program unpacked the checkpoint (a .pth file is a zip archive). "
        "Windows reports a folder as 'Permission denied'.",
        advice="Pass the file in that folder. An unpacked checkpoint (a folder with data.pkl and data/) is "
        "best downloaded again without unpacking; a folder of from_pretrained or of sharded checkpoints is "
        "opened by its own function, such as from_pretrained(folder).",
        tie=_named,
        when=lambda told: "Permission" not in told.text or _permission(told),
        say=lambda told: _denied(told) if told.groups.get("path") else Said(),
    ),
    ErrorKind(
        id="file-missing",
        title="There is no file at that path",
        pattern=r"FileNotFoundError:? ?(?:\[Errno 2\] )?(?:No such file or directory:? "
        r"?['\"](?P<path>[^'\"]{1,400}))?|"
        r"\[Errno 2\] No such file or directory|No such file or directory: ['\"](?P<path2>[^'\"]{1,400})|"
        r"\[Errno 22\] Invalid argument: ['\"](?P<path3>[^'\"]{1,400})|Parent directory .{1,300} does not "
        r"exist|"
        r"\(unicode error\) 'unicodeescape'|The provided filename .{1,300} does not exist|"
        r"Checkpoint (?:at|file) .{1,300} (?:not found|does not exist)|"
        r"Value not in list: (?:ckpt|lora|vae|model|unet|clip)_name: ?'(?P<path4>[^']{1,300})",
        cause="The path does not lead to a file: it is relative to the folder the program runs in, is "
        "misspelled, or (Windows) has backslashes that Python reads as escapes.",
        advice="Print os.path.abspath(path) to see where it looks. Write Windows paths as "
        "r'C:\\models\\best.pth' or with slashes. For saving, make the folder first: os.makedirs(folder, "
        "exist_ok=True).",
        tie=_named,
    ),
    ErrorKind(
        id="file-not-in-repo",
        title="The folder or repository does not hold the weights",
        pattern=r"does not appear to have a file named|no checkpoint files found in|for MP=0 but world size|"
        r"Can'?t load tokenizer for|"
        r"Incorrect path_or_model_id|Error no file named|no file named pytorch_model\.bin|"
        r"Can'?t load (?:the )?(?:model|weights|configuration|config) for|Can'?t find '?adapter_config\.json|"
        r"not a local folder and is not a valid model identifier|EntryNotFoundError|LocalEntryNotFoundError|"
        r"Repo id must (?:be in the form|use alphanumeric)|Unrecognized model in|HFValidationError",
        cause="from_pretrained looks for certain files (config.json with model.safetensors or "
        "pytorch_model.bin, or adapter_config.json) in a folder or a repository, and they are not there: "
        "the path is wrong, the download is not complete (of weights in several files also the index, "
        "model.safetensors.index.json, is needed), or the weights are a checkpoint of another framework.",
        advice="Look at what the folder holds. A single .pth or .ckpt file is not for from_pretrained: "
        "build the model, and load it with load_state_dict(torch.load(path, map_location='cpu')).",
    ),
    ErrorKind(
        id="save-failed",
        title="The checkpoint could not be written",
        pattern=r"PytorchStreamWriter failed|No space left on device|unexpected pos \d{1,20} vs \d{1,20}|"
        r"iostream error|write\(\): fd \d{1,6} failed|File [^\s]{1,300} cannot be opened|"
        r"Disk quota exceeded|\[Errno 28\]|"
        r"\[Errno 122\]|File size limit exceeded",
        cause="Writing stopped: the disk or the quota is full, the folder does not exist or may not be "
        "written, or the network drive failed. What was begun of the file is cut and cannot be loaded.",
        advice="Make room, delete the unfinished file, and save again. Save to a temporary name and rename "
        "it, so that the previous checkpoint survives.",
        tie=_SAVED,
    ),
    ErrorKind(
        id="cannot-pickle",
        title="An object in the checkpoint cannot be pickled",
        pattern=r"(?:cannot|can'?t) pickle (?:local |module |generator |class )?['\"<\w]|"
        r"it'?s not the same object as|not found as [\w.]{1,80}",
        cause="torch.save (or a worker that is started with spawn) pickles everything it is given, and one "
        "object cannot be: a lambda, a function or class defined inside a function, a lock, an open file, "
        "a generator.",
        advice="Save data instead of objects: torch.save(model.state_dict(), path). Move lambdas and local "
        "classes to the top of a module. For DataLoader workers: num_workers=0, or do the same.",
        tie=_SAVED,
    ),
    ErrorKind(
        id="download-hash",
        title="The download is not complete",
        pattern=r"invalid hash value \(expected",
        cause="torch.hub compares the file with the hash in its name, and they differ: the download was "
        "interrupted, or a proxy sent something else.",
        advice="Delete the file in ~/.cache/torch/hub/checkpoints and run it again.",
        tie=about_code("The error is about a file in the download cache."),
    ),
    ErrorKind(
        id="download-failed",
        title="The file could not be downloaded",
        pattern=r"HTTP ?Error (?:40[1349]|429|50\d)|CERTIFICATE_VERIFY_FAILED|urlopen error|Max retries "
        r"exceeded|"
        r"Connection(?:Error|Timeout)|couldn'?t connect to '?https?:|GatedRepoError|RepositoryNotFoundError|"
        r"rate limit exceeded|"
        r"no internet connection",
        cause="The server did not give the file: there is no connection (or a proxy in between), the link "
        "is gone, or the repository wants a login.",
        advice="Open the link in a browser. Download the file there and pass its path; for gated models "
        "log in first (huggingface-cli login).",
        tie=about_code("The error is about a download, not about this file."),
    ),
    ErrorKind(
        id="file-mode",
        title="The file was opened in a mode that does not fit, or is closed",
        pattern=r"a bytes-like object is required, not 'str'|file must have '?read'? and '?readline|"
        r"UnsupportedOperation: (?:seek|read|write|not readable|fileno)|I/O operation on closed file|"
        r"write\(\) argument must be str, not bytes",
        cause="Checkpoints are binary and are read from anywhere in the file: open(path) without 'rb', a "
        "stream that cannot seek, or a file that was closed at the end of its with block do not serve.",
        advice="Pass the path: torch.load(path), torch.save(obj, path). Or open(path, 'rb') and read inside "
        "the with block.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="not-gzip",
        title="The file is not packed in the way that its name says",
        pattern=r"Not a gzipped file|not a gzip file|ReadError: (?:file could not be opened|not a|invalid "
        r"header)|LZMAError|Invalid data stream|bad magic number for (?:central|file)",
        cause="An archive was expected (.gz, .tar, .zip), and the file is another: it was unpacked already "
        "under the same name, or a web page or a pointer was downloaded in its place.",
        advice="Look at it with the command file, or open it here. torch.load reads a checkpoint as it is; "
        "a .pth.tar is usually no tar archive.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="file-busy",
        title="Another program has the file open, or access is denied",
        pattern=r"WinError (?:32|5|33)\b|being used by another process|Text file busy|\[Errno 26\]",
        cause="Windows does not let a file be replaced or deleted while it is open: by this program (a "
        "checkpoint that is mapped with mmap or safetensors stays open), a virus scanner, a synchronized "
        "folder, or another run.",
        advice="Close what holds it (del the model that was loaded from it; load safetensors as bytes), save "
        "under another name, and keep checkpoints out of synchronized folders.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="disk-error",
        title="The disk or network drive failed, or cannot be written",
        pattern=r"\[Errno 5\]|Input/output error|Stale file handle|\[Errno 116\]|Read-only file system|"
        r"\[Errno 30\]|Transport endpoint|File name too long|\[Errno 36\]",
        cause="The system could not read or write at that place: a network drive that went away, a disk "
        "with errors, a folder that is mounted read-only, or a name that is too long.",
        advice="Copy the file to a local disk and try again; save to another folder. dmesg shows errors of "
        "the disk.",
        tie=ABOUT_CODE,
    ),
)
