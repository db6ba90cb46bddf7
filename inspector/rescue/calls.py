"""What a rescued program did: which call in which line loaded from devices that had to be mapped."""

from __future__ import annotations

from typing import Literal

from inspector.records import dataclass

Why = Literal["missing", "target", "rule", "no-rule", "no-destination", "function"]
"""Why storages were mapped, or were not.

`missing`: the device is not here. `target`: --target wants everything on one device. `rule`: a rule of --map
sends it elsewhere. `no-rule`: it is not here, and no rule covers it. `no-destination`: what the rule names is
not here either. `function`: torch refused what a function given as `map_location` asked for.
"""

Way = Literal["load", "jit", "pickle"]
"""How something was loaded: by a function of torch, as TorchScript, or from a pickle that holds tensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line of Python that calls what loads.

    Attributes:
        file: The path of its source, or what Python calls it where there is none (`<stdin>`).
        line: Its number.
        span: First and last line, first and last column (in bytes) of the call; None before Python 3.11.
        calls: The name of the function that it calls.
        takes: Which positional argument of that function is `map_location`; -1 where it has none.
    """

    file: str
    line: int
    span: tuple[int, int, int, int] | None
    calls: str
    takes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What one call had mapped from one device to one other, in all processes together.

    Attributes:
        site: The line that calls torch (or numpy, or joblib); None where nothing but Python's own code does.
        own: The line of the user's own code that led there; the same as `site` if that is the user's.
        saved: The device that the file, or the call's own `map_location`, names.
        to: Where the storages went; None where they were left to torch.
        why: The reason.
        way: How it was loaded.
        file: The path of the file, where it is known.
        storages: How many storages it were.
        nbytes: Their size together; 0 for TorchScript, whose sizes are not seen.
    """

    site: Place | None
    own: Place | None
    saved: str
    to: str | None
    why: Why
    way: Way
    file: str | None
    storages: int = 0
    nbytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """What the processes of a command wrote down.

    Attributes:
        calls: Their calls, in the order of the first process that made them.
        processes: How many Pythons started with the hook.
        with_torch: How many of them imported torch.
        failures: What failed in the hook, each text once.
    """

    calls: tuple[Call, ...]
    processes: int
    with_torch: int
    failures: tuple[str, ...]
