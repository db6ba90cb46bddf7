"""What differs between two checkpoints in words, for both programs."""

from __future__ import annotations

from collections.abc import Callable

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.diff.facts import other_keys
from inspector.diff.records import Diff, Numbers, Rule
from inspector.model.checkpoint import Tensor
from inspector.units import cut_text, escape_text, format_count, format_nbytes, format_shape

ARROW = "\u2192"
NOTHING = "(nothing)"
_MOST_CHARS = 80
_DIGITS = ".4g"
_HOW = {
    "path": "",
    "parameter": "the same slot of the same parameter",
    "shared": "one object at both places",
    "prefix": "",
    "content": "equal bytes",
}
FACT_TEXTS: dict[str, Callable[[Tensor], str]] = {
    "device": lambda row: row.device,
    "dtype": lambda row: row.dtype,
    "shape": lambda row: format_shape(row.shape),
    "stride": lambda row: "contiguous" if row.stride is None else f"({', '.join(map(str, row.stride))})",
    "layout": lambda row: row.layout,
    "requires_grad": lambda row: str(row.requires_grad),
    "role": lambda row: row.role,
    "problem": lambda row: row.problem or "sound",
}
"""The text of each fact of a row that can differ."""

LABELS = {
    "added": "added",
    "removed": "removed",
    "renamed": "renamed",
    "key": "key",
    "device": "device",
    "dtype": "dtype",
    "shape": "shape",
    "stride": "stride",
    "layout": "layout",
    "requires_grad": "requires_grad",
    "role": "role",
    "problem": "soundness",
    "class": "class",
    "metadata": "metadata",
    "values": "values",
    "bits": "other bits",
    "unread": "not compared",
    "value": "value",
    "type": "type",
    "container": "container",
    "order": "order of keys",
    "tied": "shared memory",
    "import": "imports",
    "call": "calls",
    "record": "record",
}
"""What each kind of difference is called, in the order in which filters list them."""

_UNSAID = {
    "class": "another tensor class",
    "metadata": "other settings of the tensor, such as its quantizer",
}


def describe_tensor(row: Tensor) -> str:
    """Return a tensor in one line, as it is added or removed."""
    device = "" if row.device == NO_DEVICE else f", {row.device}"
    return f"{row.dtype} {format_shape(row.shape)}, {format_nbytes(row.nbytes)}{device}"


def fact_text(fact: str, one: Tensor, other: Tensor) -> str:
    """Return how two rows differ in a fact: `device cuda:0 \u2192 cpu`."""
    text = FACT_TEXTS.get(fact)
    if fact == "key":
        a, b = other_keys(one.keys, other.keys)
        return f"{LABELS[fact]} {a} {ARROW} {b}"
    if text is None:
        return _UNSAID.get(fact, "")
    return f"{LABELS[fact]} {text(one)} {ARROW} {text(other)}"


def numbers_text(numbers: Numbers) -> str:
    """Return by how much two tensors differ, in one line."""
    if not numbers.differing:
        return _same_text(numbers)
    parts = [f"{numbers.differing:,} of {format_count(numbers.numel, 'element')} differ"]
    if numbers.max_abs:  # 0 where all that differ are NaN or infinite, or are less apart than a float64 tells
        where = " where both are finite" if numbers.not_finite else ""
        parts.append(f"by at most {numbers.max_abs:{_DIGITS}}{where}")
        if numbers.max_rel:  # 0 or None where what differs is 0 in the second: nothing is a multiple of that
            parts.append(f"relative {numbers.max_rel:{_DIGITS}}")
    if numbers.not_finite:
        parts.append(f"{numbers.not_finite:,} with NaN or infinity")
    if numbers.cosine is not None:
        parts.append(f"cosine {cosine_text(numbers.cosine)}")
    place = ", ".join(map(str, numbers.first or ()))
    parts.append(f"first at [{place}]: {numbers.first_a} {ARROW} {numbers.first_b}")
    return ", ".join(parts)


def cosine_text(cosine: float) -> str:
    """Return a cosine, which is 1 only where nothing is lost by saying so."""
    text = f"{cosine:.6f}"
    return f"{cosine!r}" if text in {"1.000000", "-1.000000"} and abs(cosine) != 1 else text


def _same_text(numbers: Numbers) -> str:
    same = "the same numbers"
    if numbers.max_abs:
        same = f"equal within the tolerance, at most {numbers.max_abs:{_DIGITS}} apart"
    if numbers.other_bits:
        return f"{same}, {numbers.other_bits:,} of them in other bits (-0.0, or another NaN)"
    return same


def how_text(how: str) -> str:
    """Return why two rows with different names are taken for the same tensor; empty where a rule says it."""
    return _HOW[how]


def rule_text(rule: Rule) -> str:
    """Return what became of names: `module. \u2192 (nothing), 120 tensors`."""
    parts = (escape_text(cut_text(part, _MOST_CHARS)) or NOTHING for part in (rule.a, rule.b))
    why = how_text(rule.how)
    return f"{f' {ARROW} '.join(parts)}   {format_count(rule.tensors, 'tensor')}{why and f', {why}'}"


def summary_parts(diff: Diff) -> list[str]:
    """Return what differs, counted; nothing where nothing does."""
    renamed = sum(rule.tensors for rule in diff.rules)
    changed = sum(change.is_known for change in diff.tensors)
    counts = (
        (changed, "tensor", "changed"),
        (len(diff.added), "tensor", "added"),
        (len(diff.removed), "tensor", "removed"),
        (renamed, "tensor", "renamed"),
        (sum(change.differs for change in diff.values), "value", "changed"),
        (len(diff.values_added), "value", "added"),
        (len(diff.values_removed), "value", "removed"),
        (len(diff.containers), "container", "of another type"),
        (len(diff.sharing), "group of tensors", "tied in one file only"),
        (len(diff.records), "record", "different"),
    )
    parts = [f"{_counted(count, noun)} {what}" for count, noun, what in counts if count]
    if diff.names:
        parts.append("loading runs other code")
    return parts


def _counted(count: int, noun: str) -> str:
    first, _, rest = noun.partition(" of ")
    return f"{format_count(count, first)} of {rest}" if rest else format_count(count, noun)


def verdict_text(diff: Diff) -> str:
    """Return in one sentence whether two checkpoints are equal, as far as they were compared."""
    if diff.differs:
        return f"Different: {', '.join(summary_parts(diff))}."
    if diff.unread:
        unread = format_count(diff.unread, "tensor")
        return f"Not known to be equal: {unread} could not be compared, and nothing else differs."
    equal = "Equal as far as it was compared" if diff.unlisted else "Equal"
    if not diff.has_containers and not diff.unlisted and are_pickled(diff):
        equal = "Equal tensors and values" if diff.a.values else "Equal tensors"
    tolerated = ((diff.tolerated, "tensor"), (diff.tolerated_values, "array"))
    within = " and ".join(format_count(count, noun) for count, noun in tolerated if count)
    if within:
        equal = f"{equal}, {within} only within the tolerance"
    same = format_count(len(diff.pairs), "tensor")
    if diff.mode == "none":
        order = f" {_reordered_text(len(diff.reordered)).capitalize()}." if diff.reordered else ""
        return f"The same names and facts: {same}. The bytes of tensors were not compared.{order}"
    how = "number by number" if within else "byte by byte"
    what = f"{same}, {format_nbytes(diff.compared_nbytes)} compared {how}"
    bits = sum(change.what == ("bits",) for change in diff.tensors)
    more = f"; {format_count(bits, 'tensor')} with the same numbers in other bits" if bits else ""
    if diff.reordered:
        more += f"; {_reordered_text(len(diff.reordered))}"
    return f"{equal}: {what}{more}."


def _reordered_text(count: int) -> str:
    mappings = format_count(count, "mapping")
    return f"the keys of {mappings} stand in another order"


def doubt_texts(diff: Diff) -> list[str]:
    """Return what could not be compared, a sentence each."""
    found = []
    if diff.unread and diff.differs:  # else the verdict says so
        found.append(f"{format_count(diff.unread, 'tensor')} could not be compared: see the reasons below.")
    if diff.unlisted:
        found.append(
            "Tensors nested too deeply to be listed, and values too many to be listed, were not compared."
        )
    if diff.uncompared:
        found.append(f"Not counted: {'; '.join(diff.uncompared)}.")
    if not diff.has_containers and are_pickled(diff):
        found.append(_unheld_text(diff.a.format, diff.b.format))
    return found


def are_pickled(diff: Diff) -> bool:
    """Return whether a pickle in either file says what holds its tensors; other formats say nothing."""
    return diff.a.safety is not None or diff.b.safety is not None


def _unheld_text(a: str, b: str) -> str:
    where = f"in two checkpoints of the format {a}" if a == b else f"between {a} and {b}"
    return f"What holds the tensors (dicts, lists, classes, the order of keys) cannot be compared {where}."


def safety_texts(diff: Diff) -> list[str]:
    """Return what loading one of the files alone would run, the worst first; said before everything else."""
    found = []
    for only_in, own, other in (("b", diff.b, diff.a), ("a", diff.a, diff.b)):
        for verdict, word in (("dangerous", "DANGEROUS"), ("unknown", "Code")):
            names = [one.text for one in diff.names if (one.verdict, one.only_in) == (verdict, only_in)]
            if names:
                path, another = (escape_text(one.path) for one in (own, other))
                shown = ", ".join(names[:8]) + (", \u2026" if len(names) > 8 else "")
                found.append(f"{word}: loading {path} imports {shown}; loading {another} does not.")
    return found
