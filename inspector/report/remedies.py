"""Lines that mend something, ready to be pasted: for Python, and for the shell that people have.

The shortest that works comes first: a call of `torch.load`. Then a copy, then the file itself. A line stands
here only if it does what it is for: calls are simulated, and the file system is asked what it would refuse.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Literal

from inspector.containers.formats import format_of
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Fix
from inspector.model.obstacles import find_obstacle, is_ambiguous, is_gzipped
from inspector.model.roles.processes import find_shards
from inspector.quoting import command, file_word, python_text, shell_word
from inspector.records import dataclass, replace
from inspector.remap.files import device_word, free_folder, free_path, record_path
from inspector.remap.forms import SAFETENSORS_SUFFIX
from inspector.remap.plan import Plan, device_texts, plan_remap
from inspector.remap.rules import parse_rule
from inspector.report.words.formats import RemedyKind
from inspector.target.call import MapLocation, TagMap, load_call
from inspector.target.profile import Profile
from inspector.target.simulate import Judged, first_failure, simulate
from inspector.target.wish import THIS

_INDEX = ".index.json"
_MOST_PAIRS = 4
_MOST_LINES = 12
_MOST_RULE_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One line."""

    kind: RemedyKind
    text: str

    @property
    def language(self) -> Literal["python", "shell"]:
        """Where it is pasted to."""
        return "python" if self.kind in {"load", "trusted"} else "shell"


def remedies_for(fix: Fix | None, judged: Judged) -> tuple[Remedy, ...]:
    """Return the lines that carry a fix out; none for a file that must not be loaded."""
    if fix is None or judged.load.way == "never":
        return ()
    if fix.kind == "rule":
        return tuple(_of_rule(fix.rule, judged))
    if fix.option is not None:
        return tuple(_of_option(*fix.option, judged))
    if fix.recovers:
        path = judged.checkpoint.path
        out = file_word(_beside(path, "recovered"))
        return (Remedy(kind="recover", text=command("recover", file_word(path), "-o", out)),)
    return (_code(judged, fix.style),)


def first_remedies(fix: Fix | None, judged: Judged) -> tuple[Remedy, ...]:
    """Return the lines that an answer begins with: the code itself, where it is short and asks for trust."""
    found = remedies_for(fix, judged)
    trusted = _trusted(judged)
    if trusted is None:
        return found
    return (trusted, *(one for one in found if one.kind != "code"), *weights_remedies(judged.checkpoint))


def _trusted(judged: Judged) -> Remedy | None:
    """Return the code that loads a file which asks for more than weights; None where it takes more."""
    checkpoint, load, target = judged.checkpoint, judged.load, judged.target
    is_plain = format_of(checkpoint.format).torch_loads and load.safety.archive is None
    if load.way not in {"names", "full"} or not is_plain or checkpoint.parts or is_gzipped(checkpoint):
        return None
    places = (None, target.destination, "cpu")
    calls = ((place, replace(load.code, map_location=place)) for place in places)
    works = (place for place, call in calls if first_failure(checkpoint, target, call) is None)
    place = next(works, "")
    if place == "" or find_shards(checkpoint) is not None:
        return None
    from inspector.snippet.loading import short_load  # noqa: PLC0415 - most files ask for nothing

    text = short_load(checkpoint.path, load.safety, target, place)
    return Remedy(kind="trusted", text=text) if text.count("\n") < _MOST_LINES else None


def weights_remedies(checkpoint: Checkpoint) -> tuple[Remedy, ...]:
    """Return what takes the weights out of a pickled model: they ask for nobody's trust."""
    from inspector.remap.preview import can_be_weights  # noqa: PLC0415 - few files are models

    if checkpoint.module_class is None or not can_be_weights(checkpoint):
        return ()
    path = file_word(checkpoint.path)
    out = file_word(_beside(checkpoint.path, "weights"))
    return (Remedy(kind="weights", text=command("export", path, "-o", out)),)


# --- calls of torch.load ------------------------------------------------------------------------------------


def load_text(path: str, *arguments: str, loader: str = "torch.load") -> str:
    """Return a call of `torch.load`, or of another loader, which may take an open file alone."""
    if loader == "pickle.load":
        return f'{loader}(open({python_text(path)}, "rb"))'
    return f"{loader}({', '.join((python_text(path), *arguments))})"


def loaded_path(path: str) -> str:
    """Return what a loader is given: an index stands for the folder that it is in."""
    return (os.path.dirname(path) or os.curdir) if path.endswith(_INDEX) else path  # noqa: PTH120 - a text


def _of_option(name: str, value: str, judged: Judged) -> Iterator[Remedy]:
    text = python_text(value[1:-1]) if value[:1] in {"'", '"'} else value
    call = load_call(judged.checkpoint, judged.load.safety)
    call = (
        replace(call, map_location=value[1:-1])
        if name == "map_location"
        else replace(call, mmap=value == "True")
    )
    if first_failure(judged.checkpoint, judged.target, call) is None and not judged.checkpoint.parts:
        yield Remedy(kind="load", text=load_text(judged.checkpoint.path, f"{name}={text}"))
    elif _is_code_good(judged):
        yield _code(judged)


def _of_rule(text: str, judged: Judged) -> Iterator[Remedy]:
    rule = parse_rule(text)
    plan = plan_remap(judged.checkpoint, (rule,))
    if rule.device is not None and not judged.checkpoint.parts:
        arguments = (one for one in _map_locations(plan, judged) if _lands(one[0], plan, judged))
        found = next(arguments, None)
        if found is not None:
            yield Remedy(kind="load", text=load_text(judged.checkpoint.path, f"map_location={found[1]}"))
        elif _is_code_good(judged):
            yield _code(judged)
            if judged.load.way in {"names", "full"}:
                return  # the same names would be refused in a copy
    obstacle = find_obstacle(judged.checkpoint)
    if (
        plan.is_empty
        or len(text) > _MOST_RULE_CHARS
        or not (obstacle is None or is_gzipped(judged.checkpoint))
    ):
        return
    path = judged.checkpoint.path
    word = device_word(set(plan.tensors.values()).union(plan.storages.values()))
    mapped = f"--map {shell_word(text)}"
    out = file_word(free_folder(path, word) if judged.checkpoint.parts else _beside(path, word))
    yield Remedy(kind="copy", text=command("remap", file_word(path), "-o", out, mapped))
    if _fits_in_place(plan, judged.checkpoint) and _may_change(path):
        yield Remedy(kind="in-place", text=command("remap", file_word(path), "--in-place", mapped))


def _map_locations(plan: Plan, judged: Judged) -> Iterator[tuple[MapLocation, str]]:
    """Yield arguments that do what a plan does, the shortest first; the last sends all to the CPU."""
    texts = sorted(device_texts(judged.checkpoint) - {"meta"})
    goes = {device: plan.by_device(device) or device for device in texts}
    ends = set(goes.values())
    if len(ends) == 1:
        to = ends.pop()
        yield to, python_text(to)
    moved = [(device, to) for device, to in goes.items() if device not in {to, "cpu"}]
    if 0 < len(moved) <= _MOST_PAIRS:
        pairs = ", ".join(f"{python_text(device)}: {python_text(to)}" for device, to in moved)
        yield TagMap(pairs=tuple(moved)), f"{{{pairs}}}"
    yield "cpu", python_text("cpu")


def _lands(map_location: MapLocation, plan: Plan, judged: Judged) -> bool:
    """Return whether a call loads, and leaves on the CPU what a plan leaves there."""
    call = load_call(judged.checkpoint, judged.load.safety, map_location)
    done = simulate(judged.checkpoint, judged.target, call)
    if done.failure is not None:
        return False
    return all(done.tensors[index] == "cpu" for index in plan.kept)


# --- commands -----------------------------------------------------------------------------------------------


def _code(judged: Judged, style: str = "plain") -> Remedy:
    words = [file_word(judged.checkpoint.path)]
    if style != "plain":
        words += ["--style", style]
    target = _word_of(judged.target)
    if target:
        words += ["--target", shell_word(target)]
    return Remedy(kind="code", text=command("snippet", *words))


def _word_of(target: Profile) -> str:
    """Return the word for a machine and what is wanted of it; empty for this one and for one from a file."""
    if target.id != THIS and target.evidence is not None:
        return ""
    if target.wanted is None:
        return "" if target.id == THIS else target.id
    return target.wanted if target.is_fewest else f"{target.id}@{target.wanted}"


def _is_code_good(judged: Judged) -> bool:
    """Return whether the code that this program writes loads the file, with everything on the CPU."""
    if is_gzipped(judged.checkpoint):
        return True
    call = replace(judged.load.code, map_location="cpu")
    return first_failure(judged.checkpoint, judged.target, call) is None


def _fits_in_place(plan: Plan, checkpoint: Checkpoint) -> bool:
    """Return whether a file takes the new devices: one without records has no room for longer names.

    A tar file has nothing to fill a single byte with.
    """
    if is_gzipped(checkpoint) or is_ambiguous(checkpoint) or checkpoint.parts:
        return False
    form = format_of(checkpoint.format)
    if form.has_records:
        return True
    old = {row.key: row.device for row in checkpoint.storages}
    spare = {len(old[key]) - len(to) for key, to in plan.storages.items() if key in old}
    spare |= {len(checkpoint.tensors[index].device) - len(to) for index, to in plan.tensors.items()}
    is_short = min(spare, default=0) >= 0 and (form.is_stream or 1 not in spare)
    return is_short and not _is_shared({old[key] for key in plan.storages if key in old}, checkpoint)


def _is_shared(devices: set[str], checkpoint: Checkpoint) -> bool:
    """Return whether one of these texts may stand for something else too: then the new one is an addition.

    Python pickles equal names as one.
    """
    keys = chain((row.keys for row in checkpoint.tensors), (row.keys for row in checkpoint.values))
    texts = (row.text.strip("'\"") for row in checkpoint.values)
    names = (key for key in chain.from_iterable(keys) if isinstance(key, str))
    return not devices.isdisjoint(chain(names, texts))


def _may_change(path: str) -> bool:
    """Return whether a file can be changed in place without being asked twice."""
    try:
        status = os.stat(path)  # noqa: PTH116 - as it is asked before the file is changed
    except OSError:
        return False
    is_ours = bool(status.st_mode & 0o222) and os.access(path, os.W_OK)
    return is_ours and status.st_nlink == 1 and not os.path.lexists(record_path(Path(path)))


def _beside(path: str, word: str) -> str:
    """Return the path of a new file: beside the file, or in the working directory if that cannot be."""
    folder, name = os.path.split(path)
    suffix = "pth" if name.lower().endswith(SAFETENSORS_SUFFIX) else ""  # that suffix asks for another form
    return free_path(path if os.access(folder or ".", os.W_OK) else name, word, suffix)
