"""Files in a folder that its loaders unpickle as well: what stands beside the ones that were read.

Loaders find their files by patterns of their own, which take more names than the readers here know:
DeepSpeed's `zero_to_fp32.py` globs `*_optim_states.pt`, Megatron-LM loads `common.pt`. So whatever is named
like a pickle is read for what it runs, and what cannot be read is not known.
"""

from __future__ import annotations

from collections.abc import Collection

from inspector.containers.container import Container
from inspector.containers.folders.folder import Folder
from inspector.containers.opening import read_container
from inspector.errors import CancelledError, CheckpointError, ContainerError, NotACheckpointError
from inspector.limits import Limits
from inspector.progress import Progress

_SUFFIXES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle", ".tar")
_MOST_FILES = 256
_MOST_WORD_NBYTES = 1 << 20


def read_member(folder: Folder, name: str, limits: Limits, progress: Progress) -> Container:
    """Read one file of a folder, and add what it runs to what the folder does."""
    try:
        with folder.open(name) as source:
            container = read_container(source, limits, progress)
    except CancelledError:
        raise
    except CheckpointError as error:
        folder.programs.absorb_failed(error, name)
        raise
    folder.programs.absorb(container.programs, name)
    return container


def read_word(folder: Folder, name: str) -> str | None:
    """Return what stands in a file that names a subfolder: None without one; loaders read it all."""
    if name in folder.outside:
        folder.programs.miss(f"what {name} names", "a link leads out of the folder")
    if name not in folder.sizes:
        return None
    with folder.open(name) as source:
        if source.nbytes > _MOST_WORD_NBYTES:
            folder.programs.miss(f"what {name} names", f"it is longer than {_MOST_WORD_NBYTES:,} bytes")
            raise ContainerError("the file is too long for the name of a folder", where=source.path)
        return source.read(0, source.nbytes).decode("utf-8", "replace").strip()


def run_beside(folder: Folder, read: Collection[str], below: str, limits: Limits, progress: Progress) -> None:
    """Read what further files run.

    Args:
        folder: The folder.
        read: The names of the files that were read.
        below: What the names begin with; files in other subfolders are not looked at.
        limits: The bounds of reading.
        progress: Asked for cancellation.
    """
    left = _MOST_FILES
    for name in (*folder.sizes, *folder.outside):
        within = name.removeprefix(below)
        is_there = name.startswith(below) and (bool(below) or "/" not in within)
        if not is_there or name in read or not name.lower().endswith(_SUFFIXES):
            continue
        progress.advance(0)
        if not left:
            folder.programs.miss("further files", f"{_MOST_FILES} of them are read")
            return
        left -= 1
        try:
            with folder.open(name) as source:
                container = read_container(source, limits, progress)
        except CancelledError:
            raise
        except NotACheckpointError as error:  # `.bin` is also what tokenizers are called
            folder.programs.absorb(error.programs, name)
        except CheckpointError as error:
            folder.programs.absorb_failed(error, name)
        else:
            folder.programs.absorb(container.programs, name)
