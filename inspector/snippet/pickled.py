"""Code for plain pickles, files of joblib, and agents of Stable-Baselines3.

Agents are loaded by the class that saved them. Neither `pickle.load` nor `joblib.load` takes a map_location:
the tensors within are opened by a function of torch's, which is replaced where there are any.
"""

from __future__ import annotations

from inspector.containers.notes import NoteKind
from inspector.containers.unread import OPENER
from inspector.errors import PlanError
from inspector.model.agents import Algorithm, algorithm_of
from inspector.model.checkpoint import Checkpoint
from inspector.model.obstacles import packing
from inspector.records import dataclass
from inspector.safety.verdict import judge
from inspector.snippet.device import Device
from inspector.snippet.literals import literal
from inspector.snippet.loading import OPENERS
from inspector.snippet.script import Bracketed, Script, call, format_code

JOBLIB = "joblib"
RUNS_CODE = "# Loading this file can run code that is in it: do so only if you trust its source."
_TO_CPU = (
    "",
    "def to_cpu(data):",
    '    """Read one tensor; torch would put it where it was saved, whatever is there now."""',
    '    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=False)',
    "",
)
_UNPICKLER = (
    "",
    "class CPUUnpickler(pickle.Unpickler):",
    "    def find_class(self, module, name):",
    '        if (module, name) == ("torch.storage", "_load_from_bytes"):',
    "            return to_cpu",
    "        return super().find_class(module, name)",
    "",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """What loading a file takes."""

    form: str
    packing: str = ""
    has_tensors: bool = True
    is_several: bool = False


def render_pickled(checkpoint: Checkpoint, path: str) -> str:
    """Write the code that loads a file, with its tensors on the CPU."""
    if judge(checkpoint).may_harm:
        raise PlanError(
            "loading this file can run commands, and nothing keeps its loader from that",
            where=checkpoint.path,
        )
    loading = Loading(
        form=checkpoint.format,
        packing=packing(checkpoint),
        has_tensors=any(use.name == OPENER for use in checkpoint.globals),
        is_several=any(note.kind is NoteKind.SEVERAL_PICKLES for note in checkpoint.notes),
    )
    return loading_code(loading, path)


def loading_code(loading: Loading, path: str) -> str:
    """Write the code for a file of which this is known."""
    script = Script(uses_torch=loading.has_tensors)
    if loading.has_tensors:
        script.need("import io")
    # joblib inflates by itself what it may have compressed, of which Python opens only some.
    # joblib packs with zlib of its own accord.
    if (
        loading.form == JOBLIB
        or (loading.packing and loading.packing not in OPENERS)
        or loading.packing == "zlib"
    ):
        script.need("import joblib")
        if loading.has_tensors:
            script.paragraph(*_TO_CPU)
            script.paragraph("# The pickle asks for this function by its name.", f"{OPENER} = to_cpu")
        script.paragraph(RUNS_CODE, *call("checkpoint = joblib.load(", literal(path)))
        return script.text()
    script.need("import pickle")
    opener = OPENERS.get(loading.packing)
    for module in () if opener is None else opener.modules:
        script.need(f"import {module}")
    if loading.has_tensors:
        script.paragraph(*_UNPICKLER, *_TO_CPU)
    load = "CPUUnpickler(file).load()" if loading.has_tensors else "pickle.load(file)"
    head = format_code(
        Bracketed(head="with open(", items=(literal(path), '"rb"'), tail=")")
        if opener is None
        else Bracketed(head=f"with {opener.head}", items=(literal(path),), tail=opener.tail),
        end=" as file:",
    )
    if not loading.is_several:
        script.paragraph(RUNS_CODE, *head, f"    checkpoint = {load}")
        return script.text()
    script.paragraph(
        "# The file holds several objects, one for each call of pickle.dump.",
        RUNS_CODE,
        "checkpoints = []",
        *head,
        "    while file.read(1):",
        "        file.seek(-1, io.SEEK_CUR)" if loading.has_tensors else "        file.seek(-1, 1)",
        f"        checkpoints.append({load})",
    )
    return script.text()


def render_agent(checkpoint: Checkpoint, path: str, device: Device) -> str:
    """Write the code that loads an agent on a device."""
    if judge(checkpoint).may_harm:
        raise PlanError(
            "loading this file can run commands, and nothing keeps its loader from that",
            where=checkpoint.path,
            remedy="write its weights alone into a file that can be checked: export -o policy.pth",
        )
    return agent_code(path, device, algorithm_of(checkpoint))


def agent_code(path: str, device: Device, found: Algorithm | None) -> str:
    """Write the code for an agent of this class; None where nothing tells which it is."""
    script = Script(uses_torch=bool(device.choice))
    name = "PPO" if found is None else found.name
    script.need(f"from {'stable_baselines3' if found is None else found.package} import {name}")
    said = "The file does not say which class saved it: put that in the place of PPO."
    if found is not None:
        said = f"The file does not name its class: by its attributes this is {name}."
    call = Bracketed(head=f"model = {name}.load(", items=(literal(path), f"device={device.code}"), tail=")")
    script.paragraph(*device.choice)
    script.paragraph(f"# {said}", RUNS_CODE, *format_code(call))
    return script.text()
