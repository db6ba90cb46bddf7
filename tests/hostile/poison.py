"""A folder in which every name that a program may look up is taken by what leaves a mark when it runs."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path

# What others import where it is there, and is not everywhere.
_WANTED_BY_OTHERS = """
    IPython OpenGL colorcet cupy dill google h5py intel_extension_for_pytorch jax matplotlib numba pandas
    psutil scipy tensorrt torch_npu torch_xla torchaudio torchvision triton typing_extensions
    sitecustomize usercustomize inspector setuptools pkg_resources _virtualenv
"""
_PROGRAMS = """
    checkpoint-inspector env file gcc cc ld ldconfig lscpu nvcc nvidia-smi objdump python python3 rocminfo sh
    sysctl uname gdbus gio gtk-update-icon-cache kde-open update-desktop-database update-mime-database
    xdg-mime xdg-open xdg-settings
"""


def poisoned_names() -> set[str]:
    """Every module of the standard library and of what is installed, and what may be installed elsewhere."""
    installed = {name.partition("/")[0] for name in metadata.packages_distributions()}
    # Python itself does not come up with another `encodings`, and so nothing else would be seen.
    names = {*sys.stdlib_module_names, *installed, *_WANTED_BY_OTHERS.split()}
    return {name for name in names if name.isidentifier()} - {"encodings"}


def poison(folder: Path, marks: Path, packages: tuple[str, ...] = ("inspector", "torch")) -> None:
    for name in poisoned_names():
        line = f"{name} was imported\n"
        said = f"open({str(marks)!r}, 'a').write({line!r})\n"
        (folder / f"{name}.py").write_text(said, encoding="utf-8")
    for name in packages:  # a package goes before a module
        package = folder / name
        package.mkdir()
        (package / "__init__.py").write_text((folder / f"{name}.py").read_text(encoding="utf-8"))
        (package / "__main__.py").write_text((folder / f"{name}.py").read_text(encoding="utf-8"))
    for name in _PROGRAMS.split():
        program = folder / name
        program.write_text(f"#!/bin/sh\necho {name} was started >>'{marks}'\n", encoding="utf-8")
        program.chmod(0o755)


def poisoned_environment(**more: str) -> dict[str, str]:
    """An environment whose search path for programs begins with the working directory, as some have it."""
    path = os.pathsep.join([".", "", os.environ["PATH"]])
    return {**os.environ, "PATH": path, **more}
