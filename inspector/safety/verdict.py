"""The verdict on a checkpoint's pickle: what it imports, and how `torch.load` would take that.

A verdict is never better than the truth: whatever is not known to be harmless counts as running code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Literal, NamedTuple

from inspector.containers.formats import format_of
from inspector.containers.notes import NoteKind
from inspector.model.agents import loader_of
from inspector.model.arguments import RANDOM_TYPES
from inspector.model.checkpoint import Checkpoint, Fault, KeyFault, Verb
from inspector.model.obstacles import ObstacleKind, find_obstacle, is_ambiguous
from inspector.model.programs.uses import PERSISTENT_ID
from inspector.pickles.oddities import OddityKind, StreamFault
from inspector.pickles.values import present_name
from inspector.records import dataclass, replace
from inspector.safety.calls import CallRow, call_rows
from inspector.safety.names import AllowList, GlobalVerdict, allow_list, judge_global, listed
from inspector.safety.offers import offers_for, withheld_reason

# The verdict on archives that another function than `torch.load` opens: they hold programs.
#
# `torch.load(weights_only=True)` promises something of a pickle, and these have no such promise: at best
# they count as running code. What their own loader runs is said for each.

_AMBIGUOUS = "Programs read different things from this file, and its loader may read others than this one."


class Archive(NamedTuple):
    """One kind of archive.

    Attributes:
        words: The verdict in a few words, where nothing worse is known.
        otherwise: What `torch.load` does with it, behind the name of that function.
        refusal: What it says with `weights_only=True`, for the answer about that.
        own: What the names begin with that its loader looks up in the archive, and not in Python.
        runs: What its loader runs, in a sentence.
        noted: Notes that say more of that.
    """

    loader: str
    words: str
    otherwise: str
    refusal: str
    own: tuple[str, ...]
    runs: str
    noted: tuple[NoteKind, ...]
    is_imported: bool
    maps: bool = True


_NOTED = {
    NoteKind.RUNS_AT_LOAD: "Some of it, __setstate__ in {}, runs as soon as the file is loaded.",
    NoteKind.FILE_ACCESS: "It reads or writes files: {}.",
    NoteKind.PYTHON_INSIDE: "The file holds Python, which runs as soon as it is imported: {}.",
    NoteKind.MACHINE_CODE: "The file holds machine code, which runs as soon as it is loaded: {}.",
}
ARCHIVES: dict[str, Archive] = {
    "torchscript": Archive(
        loader="torch.jit.load",
        words="a TorchScript program, which runs code of the file and no Python",
        otherwise="does so only with weights_only=False",
        refusal="It refuses every TorchScript file, and hands it to torch.jit.load with weights_only=False.",
        own=("__torch__.", "torch.jit._pickle."),
        runs=(
            "torch.jit.load imports no Python and calls none, but the file is a program: its code runs when "
            "the model is called, with all that the operators of torch can do."
        ),
        noted=(NoteKind.RUNS_AT_LOAD, NoteKind.FILE_ACCESS),
        is_imported=False,
    ),
    "pt2": Archive(
        loader="torch.export.load",
        words="an exported program, whose loader unpickles whatever stands beside its graph",
        otherwise="does not read it",
        refusal="It finds no data.pkl in it: an exported program is read by torch.export alone.",
        own=(),
        runs=(
            "{loader} unpickles what stands beside the graph, sample inputs among it: where "
            "weights_only=True refuses that, it goes on with weights_only=False."
        ),
        noted=(NoteKind.MACHINE_CODE,),
        is_imported=True,
        maps=False,
    ),
    "package": Archive(
        loader="torch.package.PackageImporter",
        words="a package, whose loader imports whatever its pickles name",
        otherwise="does not read it",
        refusal="It finds no data.pkl in it: a package is read by torch.package alone.",
        own=(),
        runs=(
            "torch.package imports what its pickles name, from the package itself or from what is "
            "installed; no list restricts it."
        ),
        noted=(NoteKind.PYTHON_INSIDE,),
        is_imported=True,
    ),
}
"""By the name of the format."""
_COMPILED = Archive(
    loader="torch._inductor.aoti_load_package",
    words="a compiled model, whose loader runs the machine code in it",
    otherwise="does not read it",
    refusal="It finds no data.pkl in it: a compiled model is read by AOTInductor alone.",
    own=(),
    runs="{loader} unpacks the machine code of the file and runs it; nothing restricts what that does.",
    noted=(NoteKind.MACHINE_CODE,),
    is_imported=True,
    maps=False,
)


class ArchiveVerdict(NamedTuple):
    """What is known of one archive.

    Attributes:
        danger: What in it is made to do harm, in a few words; empty where nothing is known to be.
    """

    archive: Archive
    danger: str
    globals: tuple[GlobalVerdict, ...]
    reasons: tuple[str, ...]


def judge_archive(checkpoint: Checkpoint) -> ArchiveVerdict | None:
    """Judge an archive; None for what `torch.load` opens."""
    own = checkpoint.own_loader
    archive = _COMPILED if own is not None and own.is_compiled else ARCHIVES.get(checkpoint.format)
    if archive is None:
        return None
    call = loader_of(checkpoint)
    archive = archive._replace(loader=call, runs=archive.runs.format(loader=call))
    verdicts: list[GlobalVerdict] = [
        "unknown" if use.name.startswith(archive.own) else judge_global(use.name)
        for use in checkpoint.globals
    ]
    dangerous = [
        use.name for use, verdict in zip(checkpoint.globals, verdicts, strict=True) if verdict == "dangerous"
    ]
    reasons = [_naming(dangerous, archive)] if dangerous else []
    reasons.append(archive.runs)
    noted = [note for note in checkpoint.notes if note.kind in archive.noted]
    reasons += [_NOTED[note.kind].format(note.values[0]) for note in noted]
    if is_ambiguous(checkpoint) or checkpoint.needs.oddities:
        reasons.append(_AMBIGUOUS)
    danger = _danger(archive, checkpoint, is_named=bool(dangerous))
    return ArchiveVerdict(archive, danger, tuple(verdicts), tuple(reasons))


def _naming(dangerous: list[str], archive: Archive) -> str:
    named = f"{listed(dangerous)}, which can run anything"
    if archive.is_imported:
        return f"Loading it imports {named}."
    return f"A pickle in it names {named}: {archive.loader} looks no name up in Python, other readers do."


def _danger(archive: Archive, checkpoint: Checkpoint, *, is_named: bool) -> str:
    if is_named and archive.is_imported:
        return "loading it can run commands"
    kinds = {note.kind for note in checkpoint.notes}
    if kinds >= {NoteKind.RUNS_AT_LOAD, NoteKind.FILE_ACCESS}:
        return "loading it can read and write files"
    return "a pickle in it is made to run commands" if is_named else ""


# Why torch's restricted unpickler stops, whatever is on its list.
#
# The rules are those of `torch/_weights_only_unpickler.py`: 34 opcodes, written with protocols 2 and 3 in
# mind; no calls of what is no listed name; appending to lists only, items of three kinds of dictionary
# only.

_DICTIONARIES = frozenset({"collections.OrderedDict", "collections.Counter"})
_OTHER_IDS = "weights_only=True takes only storages as persistent ids; legacy files of modules have others."
_BAD_IDS = "The place of a tensor's bytes is written in a way that torch cannot read."
_TAR = (
    "weights_only=True does not read tar files of torch 0.1. Write its weights into a new file, or load and "
    "save it once with weights_only=False, if you trust it."
)
_FAULTS: dict[Fault, str] = {
    KeyFault.UNHASHABLE: "a dictionary has an unhashable key, such as a list",
    KeyFault.ENDLESS: "a key of a dictionary is built so that comparing it never ends, and torch hangs",
    KeyFault.ALIKE: "thousands of keys of a dictionary have the same hash, and torch takes minutes over them",
    KeyFault.DEEP: "a key of a dictionary is nested so deeply that torch crashes",
    StreamFault.UNDECODABLE_NAME: "a name to import is not UTF-8",
    StreamFault.UNDECODABLE_TEXT: (
        "a str of Python 2 is not UTF-8; torch.load has the argument encoding for that"
    ),
    OddityKind.ODD_ITEMS: "a dictionary gets a key without a value",
    OddityKind.APPEND_ON_OTHER: "something is appended to an object that is no list",
    OddityKind.SETITEM_ON_OTHER: "an item is set on an object that is no dictionary",
    OddityKind.BUILD_ON_NAME: "the state of an imported object is set",
    StreamFault.BUILD_OF_NONE: "the state of an object is set to None",
    OddityKind.BUILD_ON_OTHER: "the state of an object is set that has none",
}


def unknown_opcode(checkpoint: Checkpoint, allowed: AllowList) -> str:
    """Return the first opcode that ends the load, by pickletools' name; empty where all are known."""
    if not format_of(checkpoint.format).loads_restricted:
        return ""
    return next((name for name in checkpoint.needs.opcodes if name not in allowed.opcodes), "")


def refusals(checkpoint: Checkpoint, allowed: AllowList) -> Iterator[str]:
    """Yield the reasons why `weights_only=True` stops though every name is on its list, one sentence each."""
    safety = checkpoint.needs
    if not format_of(checkpoint.format).loads_restricted:
        yield _TAR
        return
    again = "save the file again with pickle protocol 2"
    opcode = unknown_opcode(checkpoint, allowed)
    if opcode:
        yield f"weights_only=True does not know the opcode {opcode}: {again}."
    for name, verb in safety.uses:
        reason = _misuse(present_name(name), verb)
        if reason is not None:
            yield reason
    for fault in safety.faults:
        if fault in _FAULTS:
            yield f"weights_only=True stops because {_FAULTS[fault]}."


def _misuse(name: str, verb: Verb) -> str | None:
    if not name:
        return (
            "weights_only=True calls only names on its list, and this pickle calls an object without a name."
        )
    if name == PERSISTENT_ID:
        return _BAD_IDS if verb is Verb.MISREAD else _OTHER_IDS
    if verb is Verb.MISCALL:
        return f"{name} may not take the arguments that it is given."
    return _misfit(name, verb)


def _misfit(name: str, verb: Verb) -> str | None:
    if verb is Verb.APPEND:
        return f"weights_only=True appends to lists only, and this pickle appends to {name}."
    if verb is Verb.SETITEM and name not in _DICTIONARIES:
        return f"weights_only=True sets items of plain dicts only, and this pickle sets items of {name}."
    if verb is Verb.MISBUILD:
        return f"weights_only=True sets no state of {name} such as this pickle's."
    return None


def _is_unnamed(name: str) -> bool:
    return name.startswith("numpy.dtypes.") or name in RANDOM_TYPES


def names_to_allow(checkpoint: Checkpoint, allowed: AllowList) -> tuple[str, ...]:
    """Return the names that are missing from torch's list, in the order of their first use.

    Among them are the types of NumPy's elements and random generators, which the file does not name but torch
    asks for.
    """
    wanted = [present_name(use.name) for use in checkpoint.globals if not use.elsewhere]
    wanted += [name for name, _ in checkpoint.needs.uses if _is_unnamed(name)]
    return tuple(dict.fromkeys(name for name in wanted if name not in allowed.names))


# What `torch.load(weights_only=True)` will do with a file, in one of seven answers.

AnswerKind = Literal["accepts", "allow", "code", "opcode", "errors", "never", "ambiguous"]
"""`accepts`: it loads. `allow`: it refuses until just these names are on its list. `code`: the same, but
among them are functions, or what may be one: nobody should put those on a list. `opcode`: it refuses an
instruction, and the file must be saved again. `errors`: it stops for a reason that no list mends. `never`: it
refuses names that nobody should put on a list. `ambiguous`: programs read different things from the file."""

AMBIGUOUS = "Programs read different things from this file, and torch may read a different pickle."


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer, and what it rests on.

    Attributes:
        names: The names that are missing from torch's list, whatever else there is.
        opcode: The first instruction that it does not know, by pickletools' name; empty where it knows all.
        reason: Why, in one sentence; empty where the names or the opcode say it all.
        can_allow: Whether that torch has a list that names can be put on.
    """

    kind: AnswerKind
    names: tuple[str, ...] = ()
    opcode: str = ""
    reason: str = ""
    torch_version: str = ""
    can_allow: bool = True

    @property
    def sentence(self) -> str:
        """The answer in plain words."""
        how = "with weights_only=True"
        return {
            "accepts": f"torch {self.torch_version} loads it {how}.",
            "allow": f"torch {self.torch_version} refuses it {how}{self._until}",
            "code": f"torch {self.torch_version} refuses it {how}. {self.reason}",
            "opcode": (
                f"torch {self.torch_version} refuses it {how}: it does not know the opcode {self.opcode}. "
                "Allowing names does not help: save the file again with pickle protocol 2."
            ),
            "errors": f"torch {self.torch_version} does not load it {how}. {self.reason}",
            "never": f"torch {self.torch_version} refuses it {how}, for good reason. {self.reason}",
            "ambiguous": f"What torch {self.torch_version} does {how} cannot be predicted. {self.reason}",
        }[self.kind]

    @property
    def _until(self) -> str:
        names = listed(self.names)
        if self.can_allow:
            return f" until exactly these names are allowed: {names}."
        return f": it imports {names}. Names can be allowed only since torch 2.4."


def answer_for(checkpoint: Checkpoint, allowed: AllowList) -> Answer:
    """Return what `weights_only=True` of one torch does, on a machine with all devices of the file."""
    names = names_to_allow(checkpoint, allowed)
    opcode = unknown_opcode(checkpoint, allowed)
    kind, reason = _kind(checkpoint, allowed, names, opcode)
    return Answer(
        kind=kind,
        names=names,
        opcode=opcode,
        reason=reason,
        torch_version=allowed.torch_version,
        can_allow=allowed.takes_names,
    )


def _kind(
    checkpoint: Checkpoint, allowed: AllowList, names: Sequence[str], opcode: str
) -> tuple[AnswerKind, str]:
    if is_ambiguous(checkpoint):
        return "ambiguous", AMBIGUOUS
    dangerous = [name for name in names if judge_global(name) == "dangerous"]
    if dangerous:
        return "never", f"It imports {listed(dangerous)}: allowing that would allow anything."
    if opcode:
        return "opcode", ""
    reasons = list(refusals(checkpoint, allowed)) or _obstacles(checkpoint)
    if reasons:
        return "errors", reasons[0]
    withheld = offers_for(checkpoint, names).withheld
    if withheld:
        return "code", withheld_reason(checkpoint, withheld)
    return ("allow", "") if names else ("accepts", "")


def _obstacles(checkpoint: Checkpoint) -> list[str]:
    """Return what stops torch outside of the pickle, and tensors that cannot be."""
    obstacle = find_obstacle(checkpoint)
    if obstacle is None:
        return []
    row = next((row for row in checkpoint.tensors if row.problem is not None), None)
    if obstacle.kind is ObstacleKind.TENSOR and row is not None:
        return [f"{row.path or 'The tensor'} cannot be built: {row.problem}."]
    return [f"It says: {obstacle.message}"]


__all__ = ["FileVerdict", "GlobalVerdict", "SafetyVerdict", "judge", "judge_global"]

FileVerdict = Literal["weights-only", "needs-allow-list", "runs-code", "unknown", "dangerous"]
"""The best first. `unknown`: loading would unpickle something that could not be read whole."""

_DANGER = "loading it can run commands"
_GETATTR = "builtins.getattr"
_MOST_NAMED = 8
_MOST_UNREAD = 4
_NOT_TORCH_S = "It was not written by torch.save."
# What rebuilds arrays and their types, which is on no list of torch's by default.
_ARRAYS = frozenset(
    {
        *(
            f"numpy.{core}.multiarray.{name}"
            for core in ("core", "_core")
            for name in ("_reconstruct", "scalar")
        ),
        *(f"numpy.{core}.numeric._frombuffer" for core in ("core", "_core")),
        *("numpy.ndarray", "numpy.dtype"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyVerdict:
    """What loading would need.

    Attributes:
        verdict: In one word. `judge` alone says that nothing was left unread.
        to_allow: Classes to put on torch's list for that, when that is all it takes, see `offers`.
        loader: What loads the file, where `torch.load` does not; it checks nothing.
        packages: Packages that those are from and that nothing is known of: they must be the reader's own, or
            trusted.
        globals: The verdict on each name, in the order of the checkpoint's globals.
        calls: What `weights_only=False` would call besides what makes plain data, the worst first.
        is_unrestricted: Whether a loader of its own runs the pickles, which restricts nothing.
        calls_made: How many calls the pickle makes besides those that make plain tensors.
        archive: What opens the file, where that is another function than `torch.load`.
    """

    verdict: FileVerdict
    reasons: tuple[str, ...]
    globals: tuple[GlobalVerdict, ...]
    answer: Answer
    to_allow: tuple[str, ...] = ()
    calls: tuple[CallRow, ...] = ()
    calls_made: int = 0
    packages: tuple[str, ...] = ()
    has_pickles: bool = True
    is_unrestricted: bool = False
    archive: Archive | None = None
    danger: str = _DANGER
    loader: str = ""

    @property
    def weights_only(self) -> bool:
        """Whether `torch.load(weights_only=True)` is expected to take the pickle.

        Whether torch can read the file around it is another matter, see `model.obstacles`.
        """
        return self.verdict == "weights-only"

    @property
    def torch_version(self) -> str:
        """The torch by whose list it was judged."""
        return self.answer.torch_version

    @property
    def may_harm(self) -> bool:
        """Whether nobody should load it: it can run commands, or nobody knows what it runs."""
        return self.verdict in {"dangerous", "unknown"}

    @property
    def is_unsure(self) -> bool:
        """Whether nothing worse is known of it than that programs read different things from the file."""
        asks = bool(self.answer.names or self.answer.opcode)
        return self.verdict == "runs-code" and self.answer.kind == "ambiguous" and not asks


def judge(checkpoint: Checkpoint, torch_version: str | None = None) -> SafetyVerdict:
    """Judge what a checkpoint's pickle asks for.

    Args:
        torch_version: The torch that is to load it; None for the one whose list is asked first.
    """
    allowed = allow_list(torch_version)
    found = _with_inside(_judge_read(checkpoint, allowed), checkpoint)
    unread = _unread(checkpoint, allowed)
    if not unread or found.verdict == "dangerous" or (found.archive and not found.archive.is_imported):
        return replace(found, reasons=(*found.reasons, *unread))
    return replace(
        found,
        verdict="unknown",
        to_allow=(),
        packages=(),
        reasons=(*unread, *found.reasons),
        danger="what loading it runs is not known",
    )


def _with_inside(found: SafetyVerdict, checkpoint: Checkpoint) -> SafetyVerdict:
    """Return a verdict that counts the files within bytes: who has such a file opens them, too."""
    bad = [(path, name) for path, name in checkpoint.imported_inside if judge_global(name) == "dangerous"]
    if not bad:
        return found
    places, names = (list(dict.fromkeys(part)) for part in zip(*bad, strict=True))
    reason = (
        f"Bytes in it ({listed(places)}) are a checkpoint of their own that imports "
        f"{listed(names)}, which can run anything: whoever opens them with weights_only=False runs it."
    )
    danger = (
        found.danger if found.verdict == "dangerous" else "bytes in it are a checkpoint that can run commands"
    )
    return replace(
        found, verdict="dangerous", to_allow=(), packages=(), reasons=(reason, *found.reasons), danger=danger
    )


def _unread(checkpoint: Checkpoint, allowed: AllowList) -> tuple[str, ...]:
    """Return what is not known of what loading unpickles, one sentence each."""
    rows = checkpoint.needs.unread
    if not allowed.is_default:
        rows += checkpoint.needs.unread_before_2_6
    named = [f"Not read whole, so what it would run is not known: {row}." for row in rows[:_MOST_UNREAD]]
    if len(rows) > _MOST_UNREAD:
        named.append(f"{len(rows) - _MOST_UNREAD:,} more could not be read.")
    return tuple(named)


def _judge_read(checkpoint: Checkpoint, allowed: AllowList) -> SafetyVerdict:
    form = format_of(checkpoint.format)
    names = form.own_names
    if form.unchecked and (checkpoint.safety is not None or not form.runs_with):
        told = f" with {form.runs_with}" if form.runs_with else ""
        return _unchecked(checkpoint, loader_of(checkpoint) + told, allowed)
    if names:
        return _unrestricted(checkpoint, names, allowed)
    own = judge_archive(checkpoint)
    return _of_pickle(checkpoint, allowed) if own is None else _of_archive(own, checkpoint, allowed)


def _of_pickle(checkpoint: Checkpoint, allowed: AllowList) -> SafetyVerdict:
    answer = answer_for(checkpoint, allowed)
    rivals = checkpoint.needs.rivals
    verdicts = tuple(_judge_use(checkpoint, use.name) for use in checkpoint.globals)
    dangerous = [
        use.name for use, verdict in zip(checkpoint.globals, verdicts, strict=True) if verdict == "dangerous"
    ]
    doubts = [*_doubts(checkpoint), *islice(dict.fromkeys(refusals(checkpoint, allowed)), _MOST_NAMED)]
    wanted = answer.names
    offers = offers_for(checkpoint, wanted)
    withheld = [name for name in offers.withheld if judge_global(name) != "dangerous"]
    reasons = []
    own = [name for name in dangerous if name not in _elsewhere(checkpoint)]
    if own:
        reasons.append(f"Loading it with weights_only=False imports {listed(own)}, which can run anything.")
    if wanted:
        reasons.append(f"It imports names that are not on torch's allowlist: {listed(wanted)}.")
    reasons.extend(_asking(checkpoint, {*wanted, *dangerous}))
    if wanted and not allowed.takes_names:
        reasons.append(f"torch {allowed.torch_version} has no allowlist to add names to: that came with 2.4.")
    if withheld:
        reasons.append(withheld_reason(checkpoint, withheld))
    verdict: FileVerdict = "weights-only"
    if dangerous or OddityKind.BUILD_ON_NAME in checkpoint.needs.faults:
        verdict = "dangerous"
    elif doubts or withheld:
        verdict = "runs-code"
    elif wanted:
        verdict = "needs-allow-list" if allowed.takes_names else "runs-code"
    return SafetyVerdict(
        verdict=verdict,
        to_allow=offers.offered if verdict == "needs-allow-list" else (),
        packages=offers.packages if verdict == "needs-allow-list" else (),
        reasons=(*reasons, *doubts),
        globals=verdicts,
        answer=answer,
        calls=call_rows(checkpoint),
        calls_made=checkpoint.needs.calls_made,
        has_pickles=checkpoint.safety is not None,
        danger=_DANGER if own or not rivals else f"{listed(rivals)}, can run commands",
    )


def _of_archive(own: ArchiveVerdict, checkpoint: Checkpoint, allowed: AllowList) -> SafetyVerdict:
    version = allowed.torch_version
    rows = call_rows(checkpoint) if own.archive.is_imported else ()
    return SafetyVerdict(
        verdict="dangerous" if own.danger else "runs-code",
        reasons=own.reasons,
        globals=own.globals,
        answer=Answer(kind="errors", reason=own.archive.refusal, torch_version=version),
        calls=rows,
        calls_made=checkpoint.needs.calls_made if rows else 0,
        archive=own.archive,
        danger=own.danger,
    )


def _unrestricted(checkpoint: Checkpoint, own: frozenset[str], allowed: AllowList) -> SafetyVerdict:
    """Judge what a loader runs that checks nothing: only data of its own and of torch is harmless there."""
    named = [(use.name, _judge_own(checkpoint, use.name, own)) for use in checkpoint.globals]
    dangerous = [name for name, verdict in named if verdict == "dangerous"]
    unknown = [name for name, verdict in named if verdict == "unknown"]
    doubts = _doubts_of_contents(checkpoint)  # what getattr reaches is judged name by name
    reasons = []
    if dangerous:
        reasons.append(f"Loading it imports {listed(dangerous)}, which can run anything.")
    if unknown:
        reasons.append(f"Loading it imports and calls what nothing is known of: {listed(unknown)}.")
    verdict: FileVerdict = "runs-code" if reasons or doubts else "weights-only"
    if dangerous or OddityKind.BUILD_ON_NAME in checkpoint.needs.faults:
        verdict = "dangerous"
    return SafetyVerdict(
        verdict=verdict,
        reasons=(*reasons, *doubts),
        globals=tuple(verdict for _, verdict in named),
        answer=Answer(
            kind="errors",
            reason=f"It is for {loader_of(checkpoint)}, not for torch.load.",
            torch_version=allowed.torch_version,
        ),
        calls=tuple(row for row in call_rows(checkpoint) if row.name not in own),
        calls_made=checkpoint.needs.calls_made,
        is_unrestricted=True,
        has_pickles=checkpoint.safety is not None,
    )


def _judge_own(checkpoint: Checkpoint, name: str, own: frozenset[str]) -> GlobalVerdict:
    if name in own:
        return "allowed"
    if present_name(name) == _GETATTR:
        reached = [found for found, verb in checkpoint.needs.uses if verb is Verb.GETATTR]
        return "allowed" if reached and all(_is_member(found, own) for found in reached) else "dangerous"
    return judge_global(name)


def _is_member(name: str, own: frozenset[str]) -> bool:
    holder, _, member = name.rpartition(".")
    return holder in own and holder.endswith("_ENCODING") and member.isupper()


def _asking(checkpoint: Checkpoint, names: set[str]) -> list[str]:
    parts = dict.fromkeys(use.part for use in checkpoint.globals if use.part and use.name in names)
    return [f"Asked for in {listed(tuple(parts))}."] if parts else []


def _unchecked(checkpoint: Checkpoint, loader: str, allowed: AllowList) -> SafetyVerdict:
    """Judge a file whose loader calls whatever is named in it: that can be harmless, and is never checked."""
    verdicts = tuple(_judge_use(checkpoint, use.name) for use in checkpoint.globals)
    named = list(zip((use.name for use in checkpoint.globals), verdicts, strict=True))
    dangerous = [name for name, verdict in named if verdict == "dangerous"]
    unknown = [name for name, verdict in named if verdict == "unknown" and name not in _ARRAYS]
    reasons = [f"{loader} checks nothing: it imports and calls whatever a file names."]
    if dangerous:
        reasons = [f"{loader} imports {listed(dangerous)}, which can run anything."]
    elif unknown:
        reasons.append(f"This one names {listed(unknown)}: load it only if you trust whoever made it.")
    else:
        reasons.append("This one names only what makes tensors, arrays and plain data.")
    faults = checkpoint.needs.faults
    is_dangerous = bool(dangerous) or OddityKind.BUILD_ON_NAME in faults
    return SafetyVerdict(
        verdict="dangerous" if is_dangerous else "runs-code",
        reasons=(*reasons, *_doubts(checkpoint)),
        globals=verdicts,
        answer=replace(answer_for(checkpoint, allowed), kind="errors", reason=_NOT_TORCH_S),
        calls=call_rows(checkpoint, partial(_judge_call, checkpoint)),
        calls_made=checkpoint.needs.calls_made,
        loader=loader,
    )


def _judge_call(checkpoint: Checkpoint, name: str) -> GlobalVerdict:
    """Judge a name that an unchecked loader calls: what rebuilds arrays makes plain data."""
    return "allowed" if present_name(name) in _ARRAYS else _judge_use(checkpoint, name)


def _judge_use(checkpoint: Checkpoint, name: str) -> GlobalVerdict:
    """Judge a name, and what `getattr` reaches in this file: Python 3.11 writes every enumeration with it."""
    if present_name(name) in checkpoint.needs.read_within:
        return "tensor"
    if present_name(name) != _GETATTR:
        return judge_global(name)
    reached = [found for found, verb in checkpoint.needs.uses if verb is Verb.GETATTR]
    harmless = reached and all(found and judge_global(found) != "dangerous" for found in reached)
    return "unknown" if harmless else "dangerous"


def _elsewhere(checkpoint: Checkpoint) -> list[str]:
    return [use.name for use in checkpoint.globals if use.elsewhere]


def _doubts(checkpoint: Checkpoint) -> list[str]:
    """Return what keeps a list of names from being enough."""
    doubts = _doubts_of_contents(checkpoint)
    if checkpoint.needs.rivals:
        dangerous = [name for name in _elsewhere(checkpoint) if judge_global(name) == "dangerous"]
        named = f"; it imports {listed(dangerous)}, which can run anything" if dangerous else ""
        rivals = listed(checkpoint.needs.rivals)
        doubts.append(f"Other programs run what this file's own loader does not: {rivals}{named}.")
    if any(present_name(use.name) == _GETATTR for use in checkpoint.globals):
        doubts.append("It imports getattr: allowing that would allow anything.")
    return doubts


def _doubts_of_contents(checkpoint: Checkpoint) -> list[str]:
    """Return what makes the pickle that was read another than the one that torch would run."""
    doubts = []
    if checkpoint.needs.oddities:
        doubts.append(f"Readers disagree about this pickle: {checkpoint.needs.oddities[0]}.")
    if is_ambiguous(checkpoint):
        doubts.append(AMBIGUOUS)
    return doubts
