"""Messages of `nn.Module` about what is assigned to it, and about classes that are not modules yet."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import ErrorKind
from inspector.diagnose.errors.ties import about_code

_CODE = about_code("Nothing in this file decides it: it is about the code that builds or changes the model.")

ASSIGNING_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="parameter-assigned",
        title="Something that is no nn.Parameter was assigned where the model has a parameter",
        pattern=r"cannot assign '?[\w.]{1,80}'? (?:object )?(?:as|to) (?:parameter|buffer) '|"
        r"Cannot assign non-leaf Tensor to parameter|torch\.nn\.Parameter (?:or None )?(?:expected|required)",
        cause="A module keeps its parameters as nn.Parameter, and refuses a plain tensor under that name "
        "(also one that .cuda() or .to() of a parameter returned).",
        advice="Wrap it: layer.weight = torch.nn.Parameter(tensor). Or copy the values: with "
        "torch.no_grad(): layer.weight.copy_(tensor). For a state dict call load_state_dict.",
        tie=_CODE,
    ),
    ErrorKind(
        id="module-assigned",
        title="Something that is no module was assigned where the model has one",
        pattern=r"cannot assign '?[\w.]{1,80}'? (?:object )?(?:as|to) child module '|"
        r"is not a Module subclass",
        cause="The name belongs to a part of the model, and the value is none: a class that was not called, "
        "a state dict where the model belongs, or None of another type.",
        advice="Assign a module (self.head = nn.Linear(...)); load weights with load_state_dict.",
        tie=_CODE,
    ),
    ErrorKind(
        id="module-not-initialized",
        title="A model was used before nn.Module.__init__() ran",
        pattern=r"before Module\.__init__\(\) call|has no attribute '_(?:parameters|modules|buffers)'",
        cause="The class assigns layers before super().__init__() is called, or never calls it; or its "
        "name is spelled __init_ or _init__.",
        advice="Call super().__init__() in the first line of __init__.",
        tie=_CODE,
    ),
    ErrorKind(
        id="no-forward",
        title="The model has no forward()",
        pattern=r"is missing the required [\"']forward[\"'] function|in _forward_unimplemented",
        cause="A module without forward() was called: nn.ModuleList and nn.ModuleDict have none, and in a "
        "class forward may be misspelled or indented into another function.",
        advice="Call the layers in the list one by one, or use nn.Sequential. Compare the indentation of "
        "forward with that of __init__.",
        tie=_CODE,
    ),
)
