"""Which call in which line loads something, and how that is written into the journal.

A line of the journal is `S` (a process started), `T` (it imported torch), `D` with a number and a call as
JSON, such a number and a size (a storage of that call was mapped), or `!` and a failure of ours. Threads
write in any order, so each line has its number and needs no lock, which a fork could inherit locked.
"""

import itertools
import json
import os
import sys

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGES = ("site-packages", "dist-packages")
LOADERS = ("torch", "numpy", "joblib", "dill", "cloudpickle")
"""Packages whose own frames say nothing about who loads."""
FILES = ("f", "file", "filename", "fid")
"""What these packages call the file in their functions."""
MOST_CALLS = 4096
MOST_NOTES = 2000000
STANDARD = os.path.dirname(os.path.abspath(os.__file__))

_kinds = {}
_known = {}
_state = {"pid": os.getpid(), "notes": 0}
_numbers = itertools.count()


def kind_of(name):
    """Return whose code a file is: `ours`, `python`, `loader`, `library` or `own`."""
    found = _kinds.get(name)
    if found is None:
        found = _kinds[name] = _kind_of(name)
    return found


def _kind_of(name):
    if name.startswith("<frozen"):
        return "python"
    if name.startswith(HOME + os.sep):
        return "ours"
    parts = name.replace("\\", "/").split("/")
    for folder in PACKAGES:
        if folder in parts:
            below = parts[len(parts) - parts[::-1].index(folder) :]
            return "loader" if below[:1] and below[0].partition(".")[0] in LOADERS else "library"
    torch = getattr(sys.modules.get("torch"), "__file__", None) or ""
    if torch and name.startswith(os.path.dirname(torch) + os.sep):
        return "loader"
    return "python" if name.startswith(STANDARD + os.sep) else "own"


def find_call():
    """Return the frames of the call: the nearest outside the loaders, the nearest that is the user's own.

    Each comes with the frame that it called, as a pair; the third answer are the frames of the loaders.
    """
    site = own = below = None
    inside = []
    frame = sys._getframe(1)
    while frame is not None:
        kind = kind_of(frame.f_code.co_filename)
        if kind == "loader" and site is None:
            inside.append(frame)
        if kind in ("own", "library") and site is None:
            site = (frame, below)
        if kind == "own":
            own = (frame, below)
            break
        if kind in ("loader", "library"):
            below = frame
        frame = frame.f_back
    return site, own, inside


def describe(pair):
    """Return where a call stands: its file and line, its columns where Python knows them, what it calls."""
    if pair is None:
        return None
    frame, below = pair
    name = frame.f_code.co_filename
    code = None if below is None else below.f_code
    return {
        "file": os.path.abspath(name) if os.path.exists(name) else name,
        "line": frame.f_lineno,
        "span": span_of(frame),
        "calls": "" if code is None else code.co_name,
        "takes": -1 if code is None else place_of_map_location(code),
    }


def place_of_map_location(code):
    """Return which positional argument of a function is map_location: 99 by keyword only, -1 for none."""
    named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if "map_location" not in named:
        return -1
    place = named.index("map_location")
    return 99 if place >= code.co_argcount else place - (named[0] in ("self", "cls"))


def span_of(frame):
    """Return the lines and columns of the call that a frame is in; None before Python 3.11."""
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is None:
        return None
    for place, span in enumerate(positions()):
        if place == frame.f_lasti // 2:
            return None if None in span else list(span)
    return None


def file_of(inside):
    """Return the path of the file that is loaded, where the loaders know it."""
    for frame in reversed(inside):
        for name in FILES:
            if name in frame.f_code.co_varnames[: frame.f_code.co_argcount]:
                value = frame.f_locals.get(name)
                value = value if isinstance(value, (str, os.PathLike)) else getattr(value, "name", None)
                if isinstance(value, (str, os.PathLike)):
                    return os.path.abspath(os.fspath(value))
    return None


def way_of(inside, way):
    """Return how it is loaded: `load`, `jit`, or `pickle` where a pickle holds files of torch."""
    nested = any(frame.f_code.co_name == "_load_from_bytes" for frame in inside)
    return "pickle" if nested else way


def record(note, saved, to, why, nbytes, way="load"):
    """Note that the call which is running had a storage mapped, or not (`to` is None)."""
    if _state["pid"] != os.getpid():  # a fork writes a journal of its own
        _state.update(pid=os.getpid(), notes=0)
        _known.clear()
    _state["notes"] += 1
    if _state["notes"] > MOST_NOTES:
        return
    site, own, inside = find_call()
    at = [(pair[0].f_code, pair[0].f_lineno) if pair else None for pair in (site, own)]
    file = file_of(inside)
    key = (tuple(at), saved, to, why, file)
    number = _known.get(key)
    if number is None:
        if len(_known) >= MOST_CALLS:
            return
        number = next(_numbers)
        call = {"site": describe(site), "own": describe(own), "saved": saved, "to": to, "why": why}
        call.update(way=way_of(inside, way), file=file)
        note("D %d %s" % (number, json.dumps(call)))
        _known[key] = number
    note("%d %d" % (number, nbytes))
