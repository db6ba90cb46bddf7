"""The options of a script, and the words that it is run with."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from inspector.diagnose.script.values import External, Unknown, Value, seq
from inspector.errors import PlanError
from inspector.records import dataclass

_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True)
class Option:
    """One option of argparse: how it is written, and what it is where it is not given."""

    flags: tuple[str, ...]
    default: Value
    action: str
    type: Value
    is_required: bool
    takes_many: bool


class Words:
    """The words a script is run with; nothing is known of them where none were given."""

    def __init__(self, words: str | None) -> None:
        self.given = words is not None
        try:
            self.all = shlex.split(words or "")
        except ValueError as error:
            raise PlanError("these words have no end", where="--args", remedy="close the quotes") from error

    def at(self, place: Value) -> Value:
        """Return `sys.argv[place]`."""
        is_there = self.given and isinstance(place, int) and 0 < place <= len(self.all)
        return self.all[place - 1] if is_there else Unknown("the words it is run with")  # type: ignore[operator]

    def count(self) -> Value:
        """Return `len(sys.argv)`."""
        return len(self.all) + 1 if self.given else Unknown("the words it is run with")


def add_argument(values: Sequence[Value], named: Mapping[str, Value]) -> tuple[str, Option]:
    """Return the name of an option, and the option, from the arguments of `add_argument`."""
    flags = tuple(value for value in values if isinstance(value, str))
    longest = next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")
    action, nargs = named.get("action"), named.get("nargs")
    kind = action if isinstance(action, str) else "optional" if isinstance(action, External) else ""
    is_positional = bool(flags) and not flags[0].startswith("-")
    option = Option(
        flags,
        named.get("default", {"store_true": False, "store_false": True}.get(kind)),
        kind,
        named.get("type"),
        named.get("required") is True or (is_positional and nargs not in {"?", "*"}),
        nargs in {"+", "*"} or isinstance(nargs, int),
    )
    return str(named.get("dest") or longest.lstrip("-").replace("-", "_")), option


def parsed(words: Words, options: Mapping[Value, Value]) -> dict[str, Value]:
    """Return the value of each option."""
    found: dict[str, Value] = {}
    rest, free = list(words.all), []
    known = {str(name): one for name, one in options.items() if isinstance(one, Option)}
    by_flag = {flag: name for name, one in known.items() for flag in one.flags if flag.startswith("-")}
    while rest:
        flag, is_joined, value = rest.pop(0).partition("=")
        name = by_flag.get(flag)
        if name is None:
            free += [] if flag.startswith("-") else [flag]
        elif known[name].action:
            found[name] = known[name].action != "store_false"
        elif known[name].takes_many:
            many: list[Value] = []
            while rest and not rest[0].startswith("-"):
                many.append(_converted(known[name], rest.pop(0)))
            found[name] = seq(many)
        elif is_joined or rest:
            found[name] = _converted(known[name], value if is_joined else rest.pop(0))
    for key, given in options.items():
        name, option = str(key), known.get(str(key))
        if option is None:
            found.setdefault(name, given)
        elif option.flags[:1] and not option.flags[0].startswith("-") and free:
            found[name] = _converted(option, free.pop(0))
        else:
            is_text = isinstance(option.default, str)
            default: Value = _converted(option, str(option.default)) if is_text else option.default
            found.setdefault(name, Unknown(f"--{name}") if option.is_required else default)
    return found


def _converted(option: Option, word: str) -> Value:
    kind = option.type.name if isinstance(option.type, External) else ""
    if kind == "int" and word.lstrip("-").isdigit() and len(word) < 18:
        return int(word)
    is_truth = kind == "bool" or (option.type is not None and not kind)  # a function such as `str2bool`
    return _TRUTHS.get(word.lower(), word) if is_truth else word
