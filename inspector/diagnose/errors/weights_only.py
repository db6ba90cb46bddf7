"""Messages of `torch.load(weights_only=True)`, the default since torch 2.6.

The wordings: "Unsupported class" in 1.13 to 2.3, "Unsupported global: GLOBAL" since 2.4, see
`torch/_weights_only_unpickler.py`; around them `_get_wo_message` of `torch/serialization.py`.
"""

from __future__ import annotations

from inspector.diagnose.errors.explanation import Context, Tied, Told
from inspector.diagnose.listing import listed, plain
from inspector.model.findings import Fix
from inspector.pickles.values import package_of, present_name
from inspector.safety.names import default_allow_list, judge_global, known_classes
from inspector.safety.verdict import judge

_PLAIN = Fix(style="plain")
_OLDEST = "1.13.0"  # the first with weights_only, and the shortest list


def tie_global(context: Context) -> Tied:
    """Look the refused name up in the file, and say what allowing it means."""
    name = context.groups["name"].strip(".")
    uses = {present_name(use.name): use.count for use in context.checkpoint.globals}
    uses |= {use.name: use.count for use in context.checkpoint.globals}
    wanted = [other for other in context.safety.to_allow if other != name]
    if name not in uses:
        asks = f" It asks for {listed(context.safety.to_allow)}." if context.safety.to_allow else ""
        here = f"This file does not ask for {plain(name)}: the error comes from another file.{asks}"
        return Tied(fits="no", here=here)
    here = f"This file asks for {plain(name)}. {_may_be_allowed(context, name)}"
    if judge_global(name) == "dangerous":
        return Tied(fits="yes", here=here, finding="dangerous-global", advice=_DANGEROUS)
    if context.safety.verdict == "needs-allow-list":
        more = f" Next it would ask for {listed(wanted)}: allow them together." if wanted else ""
        return Tied(fits="yes", here=f"{here}{more}", fix=_PLAIN)
    here = f"{here} {_reasons(context)}".strip()
    if context.safety.may_harm:
        return Tied(fits="yes", here=here, finding=_finding(context), advice=_DANGEROUS)
    advice = "" if present_name(name) in default_allow_list().names else _NOT_ON_A_LIST
    return Tied(fits="yes", here=here, finding=_finding(context), fix=_PLAIN, advice=advice)


def _may_be_allowed(context: Context, name: str) -> str:
    """Return what putting a name on torch's list means; only classes of which objects are made may be."""
    present = present_name(name)
    if judge_global(name) == "dangerous":
        return "It can run commands or change this machine: do not allow it, wherever the file comes from."
    if present in default_allow_list().names:
        return "Recent versions of torch know it: update torch, or allow it."
    if present not in context.safety.to_allow:
        return "It should not be allowed: what is on torch's list may be called with any arguments."
    if present in known_classes():
        return "It is a class that only holds data, so it can be allowed."
    package = plain(package_of(present))
    return f"The file only makes objects of it: allow it if {package} is your own code, or code you trust."


_NOT_ON_A_LIST = (
    "Do not add names to torch's list for this file. It is best to save only the state_dict where the file "
    "was made. If you trust the file, weights_only=False loads it, and runs whatever code is in it."
)
_DANGEROUS = (
    "Do not load this file with weights_only=False, and do not allow any of its names: no model needs them. "
    "Delete the file, or ask where it comes from. This program can show what is in it without running it."
)


def tie_verdict(context: Context) -> Tied:
    """Return what the restricted unpickler would say to this file."""
    if context.safety.weights_only:
        if not judge(context.checkpoint, _OLDEST).weights_only:
            here = "This torch loads the file with weights_only=True; older ones refuse names in it."
            return Tied(fits="unknown", here=here)
        here = "weights_only=True loads this file as it is: the error comes from another file."
        return Tied(fits="no", here=here)
    if context.safety.may_harm:
        return Tied(fits="yes", here=_reasons(context), finding=_finding(context), advice=_DANGEROUS)
    return Tied(fits="yes", here=_reasons(context), finding=_finding(context), fix=_PLAIN)


def _reasons(context: Context) -> str:
    return " ".join(context.safety.reasons)


def _finding(context: Context) -> str:
    ids = {"dangerous": "dangerous-global", "unknown": "runs-code", "weights-only": ""}
    return ids.get(context.safety.verdict, context.safety.verdict)


def tie_opcode(context: Context) -> Tied:
    """Return whether this file uses opcodes that the restricted unpickler does not know."""
    protocol = context.checkpoint.needs.protocol
    tied = tie_verdict(context)
    if tied.fits == "yes" and protocol > 3:
        here = f"This file was pickled with protocol {protocol}; torch saves with 2. {tied.here}"
        return Tied(fits="yes", here=here, finding=tied.finding, fix=tied.fix, advice=tied.advice)
    return tied


# The bytes that begin an opcode in any protocol, see pickletools; the rest is not a pickle.
_OPCODES = frozenset(
    b"(.012FIJKLMNPQRSTUVX]abcdeghijlopqrstu}BC\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93"
    b"\x94\x95\x96\x97\x98G)"
)
_NO_PICKLES = {
    "v": "118 is v, the first letter of a Git LFS pointer (version https://git-lfs...): fetch the file.",
    "<": "60 is '<', with which a web page begins: the link led to a page, not to the file.",
    "{": "123 is '{', with which JSON begins: an error message of a server, or a configuration.",
    "\x1f": "31 begins a gzip archive: decompress it first.",
}


def first_opcode(told: Told) -> dict[str, str]:
    """Find out whether the unpickler stumbled over a byte that no pickle has, and what begins with it."""
    number = int(told.groups["opcode"] or "0")
    about = _NO_PICKLES.get(chr(number), "")
    foreign = told.groups["opcode"] and (number not in _OPCODES or about)
    return {"foreign": "yes" if foreign else "", "about": about}
