"""Messages about files that were opened in another way than they are read, and about disks."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import ErrorKind
from inspector.diagnose.errors.ties import about_code

_CODE = about_code("Nothing in this file decides it: it is about how it is opened, and the disk it is on.")

STREAM_ERRORS: tuple[ErrorKind, ...] = (
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
        tie=_CODE,
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
        tie=_CODE,
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
        tie=_CODE,
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
        tie=_CODE,
    ),
)
