"""What torch's zip reader says when it refuses, in the words of torch 2.13.

The reader is `caffe2/serialize/inline_container.cc`, with miniz 3.0.2 below it.
"""

from __future__ import annotations

from enum import Enum

from inspector.units import cut_text, escape_text


class MinizError(Enum):
    """The texts of `mz_zip_get_error_string`, as far as a file can make torch say them."""

    NO_DIRECTORY = "failed finding central directory"
    NOT_A_ZIP = "not a ZIP archive"
    CORRUPTED = "invalid header or archive is corrupted"
    MULTIDISK = "unsupported multidisk archive"
    ENCRYPTED = "unsupported encryption"
    METHOD = "unsupported method"
    FEATURE = "unsupported feature"
    DIRECTORY_SIZE = "unsupported central directory size"
    NOT_FOUND = "file not found"


NO_VERSION = (
    'RuntimeError: Expected hasRecord("version") to be true, but got false.  (Could this error message be '
    "improved?  If so, please report an enhancement request to PyTorch.)"
)
UNDECODABLE = "UnicodeDecodeError: 'utf-8' codec can't decode byte"
_MOST_NAME = 120
_ADVICE = (
    "This is an internal miniz error. If you are seeing this error, there is a high likelihood that your "
    "checkpoint file is corrupted. This can happen if the checkpoint was not saved properly, was "
    "transferred incorrectly, or the file was modified after saving."
)


def miniz_words(doing: str, error: MinizError) -> str:
    """Return the message of `PyTorchStreamReader::valid`, with the exception's name."""
    return f"RuntimeError: PytorchStreamReader failed {doing}: {error.value}. {_ADVICE}"


def no_folder_words(name: str, folder: str = "") -> str:
    """Return the message about a record outside of `folder`; without one, about the first record."""
    place = f" {cut_text(escape_text(folder), _MOST_NAME)}" if folder else ""
    shown = cut_text(escape_text(name), _MOST_NAME)
    return f"RuntimeError: file in archive is not in a subdirectory{place}: {shown}"
