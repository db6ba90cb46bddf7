"""Messages of NumPy around checkpoints: another version wrote the file, or compiled code is for one."""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import Context, ErrorKind, Said, Tied, Told
from inspector.diagnose.errors.ties import ABOUT_MACHINE, global_names
from inspector.diagnose.listing import listed


def _numpy(context: Context) -> Tied:
    """Return whether NumPy's objects are in this file."""
    wanted = [name for name in global_names(context) if name.startswith("numpy.")]
    if wanted:
        return Tied(fits="yes", here=f"This file holds NumPy objects: it asks for {listed(wanted)}.")
    return Tied(fits="no", here="This file holds no NumPy objects: the error comes from another file.")


_EXPECTED = re.compile(r"Expected (?P<wanted>\d{1,5}) from C header, got (?P<have>\d{1,5}) from PyObject")
_VERSIONS = re.compile(
    r"compiled against A[BP]I version (?P<wanted>\w{3,12}),? but this version of numpy is (?P<have>\w{3,12})",
    re.IGNORECASE,
)


def _abi(told: Told) -> Said:
    """Explain whether the installed NumPy is too old or too new, where the message has both numbers."""
    sizes, versions = _EXPECTED.search(told.text), _VERSIONS.search(told.text)
    wanted, have = _numbers(sizes or versions)
    if wanted > have or "numpy._core" in told.text:
        return Said(
            title="The installed NumPy is too old for compiled code",
            cause="A package with compiled code was built for a newer NumPy than the one that is installed.",
            advice="python -m pip install -U numpy. If something else needs the old NumPy, install a version "
            "of the package from that time instead.",
        )
    return Said()


def _numbers(match: re.Match[str] | None) -> tuple[int, int]:
    try:
        return (0, 0) if match is None else (int(match["wanted"], 0), int(match["have"], 0))
    except ValueError:
        return 0, 0


ARRAY_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="numpy-abi",
        title="Compiled code does not fit the installed NumPy",
        pattern=r"compiled using NumPy 1\.x cannot be run|_ARRAY_API not found|Numpy is not available|"
        r"numpy\.(?:dtype|ndarray|ufunc) size changed|compiled against (?:ABI|API) version|"
        r"numpy\.core\.multiarray failed to import|numpy\.core\._multiarray_umath|"
        r"numpy\._core\._multiarray_umath|"
        r"numpy C-extensions failed|could not infer dtype of numpy\.|"
        r"expected np\.ndarray \(got numpy\.ndarray\)",
        cause="torch, or another package with compiled code, was built for NumPy 1, and NumPy 2 is "
        "installed (or the other way round). torch works with NumPy 2 from 2.3 on.",
        advice="python -m pip install 'numpy<2', or update the package: torch 2.3 or newer.",
        tie=ABOUT_MACHINE,
        say=_abi,
    ),
    ErrorKind(
        id="numpy-version",
        title="The file was written with another version of NumPy",
        pattern=r"No module named ['\"]?(?P<module>numpy\._core[\w.]{0,60})|module '?numpy'? has no "
        r"attribute '?_core|"
        r"is not a known BitGenerator module|_reconstruct: First argument must be|"
        r"from the pickle has an incompatible dtype|__(?:randomstate|bit_generator|generator)_ctor\(\) takes",
        finding="needs-allow-list",
        cause="NumPy 2 renamed numpy.core to numpy._core and changed how random generators are pickled. A "
        "file that holds NumPy objects uses the names of the NumPy that wrote it, and an older NumPy does "
        "not know the new ones.",
        advice="Update NumPy: 2.0 or newer for numpy._core. Or save plain numbers and tensors instead of "
        "NumPy objects.",
        tie=_numpy,
    ),
    ErrorKind(
        id="numpy-gone",
        title="The code is older than the installed NumPy",
        pattern=r"module '?numpy'? has no attribute '?(?P<name>bool8?|float_?|int_?|object0?|str0?|"
        r"complex_?|long|unicode_?|typeDict|"
        r"Inf|NaN|infty|string_|product|cumproduct|sctypes|asscalar)\b|np\.\w{1,8}' was a deprecated alias",
        cause="NumPy 1.24 removed np.bool, np.int, np.float and the like, NumPy 2 more of them, and the "
        "code still uses one.",
        advice="Write bool, int or float (or np.float64) instead, update the package, or python -m pip "
        "install 'numpy<1.24'.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="numpy-pickle",
        title="np.load does not unpickle by default",
        pattern=r"Object arrays cannot be loaded when allow_pickle=False|Cannot load file containing "
        r"pickled data when "
        r"allow_pickle=False",
        cause="The file holds Python objects (or is no NumPy file at all, such as a checkpoint of torch), "
        "and np.load reads only numbers unless it is told otherwise.",
        advice="A checkpoint of torch is read with torch.load(path, map_location='cpu'). If it is a NumPy "
        "file that you trust: np.load(path, allow_pickle=True), which runs what is in it.",
    ),
)
