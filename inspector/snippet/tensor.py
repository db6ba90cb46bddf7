"""Code that loads one tensor of a file, on the CPU: every machine has that."""

from __future__ import annotations

from inspector.containers.formats import format_of
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.records import dataclass
from inspector.safety.verdict import SafetyVerdict
from inspector.snippet.literals import literal
from inspector.snippet.loading import Load, write_load
from inspector.snippet.script import Script, call
from inspector.target.profile import Profile

_ROOT = "checkpoint"
_SAFETENSORS = ".safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A tensor whose code is wanted.

    Attributes:
        expression: What reaches it in the loaded `checkpoint`; empty for nothing.
        part: The file that holds it, where a checkpoint consists of several.
        damage: What is wrong with its bytes, or empty.
    """

    checkpoint: Checkpoint
    tensor: Tensor
    expression: str
    part: str = ""
    damage: str = ""

    @property
    def safetensors(self) -> str:
        """The safetensors file that holds it; empty where it is in no such file."""
        if self.part:
            return self.part if self.part.endswith(_SAFETENSORS) else ""
        return self.checkpoint.path if format_of(self.checkpoint.format).reads_by_name else ""


def why_no_code(wanted: Wanted, verdict: SafetyVerdict) -> str:
    """Return why there is no code that loads a tensor; empty if there is."""
    tensor, is_alone = wanted.tensor, bool(wanted.safetensors)
    is_loaded = is_alone or format_of(wanted.checkpoint.format).torch_loads
    reasons = (
        (verdict.may_harm, f"loading this file is not safe: {verdict.danger or 'nobody knows what it runs'}"),
        (tensor.part_of is not None, "it is a part of another tensor, above it"),
        (tensor.layout == "storage", "it is a bare storage"),
        (bool(wanted.damage), wanted.damage),
        (not is_loaded, "the loader of this format gives no single tensor"),
        (not is_alone and not wanted.expression, "a key on the way is an object, neither text nor a number"),
    )
    return next((why for applies, why in reasons if applies), "")


def tensor_code(wanted: Wanted, target: Profile) -> str:
    """Write the code that loads a tensor, where `why_no_code` has no reason against it."""
    checkpoint, expression = wanted.checkpoint, wanted.expression
    if wanted.safetensors:
        return _from_safetensors(wanted.safetensors, str(wanted.tensor.keys[0]))
    is_root = expression == _ROOT
    script = Script()
    load = Load(checkpoint, target, checkpoint.path, "tensor" if is_root else _ROOT)
    write_load(script, load, 'map_location="cpu"')
    if not is_root:
        script.paragraph(f"tensor = {expression}")
    return script.text()


def _from_safetensors(path: str, name: str) -> str:
    script = Script(uses_torch=False)
    script.need("from safetensors import safe_open")
    opened = call("with safe_open(", literal(path), 'framework="pt"', end=" as file:")
    script.paragraph(*opened, *call("tensor = file.get_tensor(", literal(name), indent="    "))
    return script.text()
