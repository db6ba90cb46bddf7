"""The verdict on a checkpoint's pickle: what it imports, and how `torch.load` would take that.

The rules are those of torch's `torch/_weights_only_unpickler.py`: it knows 34 opcodes of protocols 2 and 3
and imports only what is on its list. A verdict is never better than the truth: whatever is not known to be
harmless counts as running code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from inspector.model.checkpoint import Checkpoint
from inspector.safety.allowlist import default_allow_list

GlobalVerdict = Literal["tensor", "allowed", "unknown", "dangerous"]
FileVerdict = Literal["weights-only", "needs-allow-list", "runs-code", "dangerous"]

_OPCODES = frozenset(
    "APPEND APPENDS BINFLOAT BINGET BININT BININT1 BININT2 BINPERSID BINPUT BINUNICODE BUILD EMPTY_DICT EMPTY_LIST "
    "EMPTY_SET EMPTY_TUPLE GLOBAL LONG1 LONG_BINGET LONG_BINPUT MARK NEWFALSE NEWOBJ NEWTRUE NONE PROTO REDUCE SETITEM "
    "SETITEMS SHORT_BINSTRING STOP TUPLE TUPLE1 TUPLE2 TUPLE3".split()
)
_PROTOCOLS = frozenset({2, 3})
# Modules whose names a checkpoint has no honest use for: processes, files, code, the network.
_DANGEROUS_MODULES = frozenset(
    "os posix nt sys subprocess pty commands shutil socket ssl http urllib ftplib smtplib telnetlib webbrowser runpy "
    "code codeop pdb bdb timeit cProfile profile trace ctypes importlib pkgutil imp zipimport asyncio multiprocessing "
    "threading signal platform pip ensurepip venv requests marshal pickle cloudpickle dill".split()
)
_DANGEROUS_NAMES = frozenset(
    "builtins.eval builtins.exec builtins.compile builtins.open builtins.__import__ builtins.getattr builtins.setattr "
    "builtins.delattr builtins.globals builtins.locals builtins.vars builtins.breakpoint builtins.input io.open "
    "operator.attrgetter operator.methodcaller types.CodeType types.FunctionType functools.partial torch.load "
    "torch.hub.load torch.jit.load torch.ops.load_library torch.classes.load_library numpy.load".split()
)
_PYTHON2_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg", "Queue": "queue", "cPickle": "pickle"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyVerdict:
    """What loading would need.

    Attributes:
        verdict: In one word.
        weights_only: Whether `torch.load(weights_only=True)` is expected to take the file.
        to_allow: Names to put on torch's list for that, when that is all it takes.
        reasons: Why, one sentence each.
        globals: The verdict on each name, in the order of the checkpoint's globals.
        torch_version: The torch whose list was asked.
    """

    verdict: FileVerdict
    weights_only: bool
    to_allow: tuple[str, ...]
    reasons: tuple[str, ...]
    globals: tuple[GlobalVerdict, ...]
    torch_version: str


def judge(checkpoint: Checkpoint) -> SafetyVerdict:
    """Judge what a checkpoint's pickle asks for."""
    verdicts = tuple(judge_global(use.name) for use in checkpoint.globals)
    unknown = _named(checkpoint, verdicts, "unknown")
    dangerous = _named(checkpoint, verdicts, "dangerous")
    refusals = _refusals(checkpoint)
    reasons = []
    if dangerous:
        reasons.append(f"Loading it with weights_only=False imports {', '.join(dangerous)}, which can run anything.")
    if checkpoint.safety.oddities:
        reasons.append(f"Readers disagree about this pickle: {checkpoint.safety.oddities[0]}.")
    if unknown:
        reasons.append(f"It imports names that torch does not know: {', '.join(unknown)}.")
    verdict: FileVerdict = "weights-only"
    if dangerous:
        verdict = "dangerous"
    elif refusals or checkpoint.safety.oddities:
        verdict = "runs-code"
    elif unknown:
        verdict = "needs-allow-list"
    return SafetyVerdict(
        verdict=verdict,
        weights_only=verdict == "weights-only",
        to_allow=unknown if verdict == "needs-allow-list" else (),
        reasons=(*reasons, *refusals),
        globals=verdicts,
        torch_version=default_allow_list().torch_version,
    )


def judge_global(name: str) -> GlobalVerdict:
    """Judge one dotted name."""
    module, _, rest = name.partition(".")
    name = f"{_PYTHON2_MODULES.get(module, module)}.{rest}"
    if name in default_allow_list().names:
        return "tensor" if name.startswith("torch.") else "allowed"
    if module in _DANGEROUS_MODULES or name in _DANGEROUS_NAMES:
        return "dangerous"
    return "unknown"


def _named(checkpoint: Checkpoint, verdicts: tuple[GlobalVerdict, ...], wanted: GlobalVerdict) -> tuple[str, ...]:
    return tuple(use.name for use, verdict in zip(checkpoint.globals, verdicts, strict=True) if verdict == wanted)


def _refusals(checkpoint: Checkpoint) -> list[str]:
    """Say why torch's restricted unpickler would stop, whatever is on its list."""
    reasons = []
    strangers = [name for name in checkpoint.safety.opcodes if name not in _OPCODES]
    if strangers:
        reasons.append(
            f"weights_only=True does not know the opcode {strangers[0]}: save the file again with pickle protocol 2."
        )
    elif checkpoint.safety.protocol not in _PROTOCOLS:
        reasons.append(f"weights_only=True refuses pickle protocol {checkpoint.safety.protocol}.")
    return reasons
