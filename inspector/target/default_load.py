"""The one judgment of a file on a machine: what `torch.load(path)` does there, and our code.

The call is the one that the machine's torch makes by default: restricted since torch 2.6, unrestricted
before. Of a format with a loader of its own it is that loader's; what `torch.load` says to such a file is
another finding. The window, `check`, the findings, the snippets and the explanations of errors quote this and
judge nothing themselves, so that they cannot contradict each other.
"""

from __future__ import annotations

from typing import Literal

from inspector.containers.formats import format_of
from inspector.model.agents import loader_of
from inspector.model.checkpoint import Checkpoint
from inspector.records import dataclass, replace
from inspector.safety.allowlist import allow_list
from inspector.safety.verdict import SafetyVerdict, judge
from inspector.target.load_call import LoadCall, plain_call
from inspector.target.loading import load_call
from inspector.target.machine.profile import Profile
from inspector.target.simulate import LoadFailure, first_failure
from inspector.target.versions import HAS_WEIGHTS_ONLY, release_of

Way = Literal["as-it-is", "unchecked", "unsure", "names", "full", "other", "never"]
"""`as-it-is`: the default call loads it and runs nothing. `unchecked`: it loads it, and runs what the file
asks for. `unsure`: what was read loads, and programs read different things from the file. `names`: it refuses
until names are allowed. `full`: it refuses whatever is allowed. `other`: something other than the pickle
stops it, whatever the arguments. `never`: it should not be loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultLoad:
    """What becomes of a file on a machine.

    Attributes:
        safety: The verdict on its pickles, by the list of the machine's torch.
        failure: What stops `torch.load(path)`, or the loader of its format; None if nothing does.
        loader: What that loader is, as code that the path in parentheses follows.
        code: The call that our loading code makes, with the names allowed that it allows. For a file that
            should not be loaded, it is the restricted call, which refuses it.
        stop: What stops that call, or None: a device that is missing, or damage.
        way: Both in one word.
    """

    safety: SafetyVerdict
    failure: LoadFailure | None
    code: LoadCall
    stop: LoadFailure | None
    way: Way
    loader: str = "torch.load"

    @property
    def loads(self) -> bool:
        """Whether `torch.load(path)` works there."""
        return self.failure is None

    @property
    def last_error(self) -> LoadFailure | None:
        """What is left when the names are allowed, or weights_only=False is given, or nothing has to be."""
        return self.stop or (self.failure if self.way == "other" else None)

    @property
    def is_safe(self) -> bool:
        """Whether loading it runs nothing but what torch counts as harmless, whatever the arguments."""
        return self.safety.weights_only


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """A file, a machine, and what becomes of the one on the other."""

    checkpoint: Checkpoint
    target: Profile
    load: DefaultLoad


def judge_load(checkpoint: Checkpoint, target: Profile, known: SafetyVerdict | None = None) -> DefaultLoad:
    """Judge a file on a machine.

    Args:
        checkpoint: The file.
        target: The machine.
        known: A verdict on the file; it is taken where it is by the list of the machine's torch.
    """
    safety = judge_for(checkpoint, target, known)
    call, form = load_call(checkpoint, safety), format_of(checkpoint.format)
    if not form.torch_loads:
        map_location = "cpu" if form.loader_maps else None
        refusal = call.refusal if form.loader_restricts else None
        call = replace(call, by_loader=True, map_location=map_location, refusal=refusal)
    failure = first_failure(checkpoint, target, call)
    code = _code(checkpoint, target, safety)
    stop = failure if safety.may_harm else first_failure(checkpoint, target, code)
    way = _way(safety, failure)
    return DefaultLoad(
        safety=safety, failure=failure, code=code, stop=stop, way=way, loader=loader_of(checkpoint)
    )


def judge_for(
    checkpoint: Checkpoint, target: Profile | None, known: SafetyVerdict | None = None
) -> SafetyVerdict:
    """Return the verdict on a file by the list of a machine's torch, by the newest without a machine."""
    version = None if target is None else target.torch_version
    if known is not None and known.torch_version == allow_list(version).torch_version:
        return known
    return judge(checkpoint, version)


def code_weights_only(safety: SafetyVerdict) -> bool:
    """Return the argument of that name in our loading code: False only where no allowed name helps."""
    return safety.verdict != "runs-code" or safety.is_unsure


def _code(checkpoint: Checkpoint, target: Profile, safety: SafetyVerdict) -> LoadCall:
    release = release_of(target.torch_version)
    form = format_of(checkpoint.format)
    if not form.torch_loads:
        place = "cpu" if form.loader_maps else None
        return replace(plain_call(release), by_loader=True, map_location=place)
    if release < HAS_WEIGHTS_ONLY:
        return plain_call(release)  # the argument is not known yet
    call = load_call(checkpoint, safety, weights_only=code_weights_only(safety))
    return call if safety.may_harm else replace(call, refusal=None)


def _way(safety: SafetyVerdict, failure: LoadFailure | None) -> Way:
    if safety.may_harm:
        return "never"
    if failure is None:
        return "as-it-is" if safety.weights_only else "unsure" if safety.is_unsure else "unchecked"
    if safety.weights_only or safety.is_unsure:
        return "other"
    return "names" if safety.verdict == "needs-allow-list" else "full"
