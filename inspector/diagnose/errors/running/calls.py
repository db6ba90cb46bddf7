"""Messages about calls of torch: types of arguments, what a module is assigned, what TorchScript compiles."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import ErrorKind
from inspector.diagnose.errors.ties import ABOUT_CODE

CALL_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="script-interpreter",
        title="An operation failed inside a TorchScript model",
        pattern=r"The following operation failed in the TorchScript interpreter",
        cause="The error itself stands below, after the lines of the serialized code.",
        advice="Paste the whole text, with its last line.",
        tie=ABOUT_CODE,
        is_wrapper=True,
    ),
    ErrorKind(
        id="script-compile",
        title="TorchScript cannot compile this code",
        pattern=r"Tracer cannot infer type of|Can'?t redefine method:|attribute lookup is not defined on "
        r"python value|is currently not supported in Torchscript|NYI: Named tensors are not supported|"
        r"Unknown type name '[\w.]{1,60}'|Unsupported node kind|Compiled functions can'?t take variable|"
        r"Module '\w{1,60}' has no attribute '\w{1,60}' \(This (?:attribute|function) exists|"
        r"Could not get name of python class object|(?:Only (?:tensors|tuples)|dictionary inputs) .{0,60}"
        r"(?:traced|tracer)|Encountering a dict at the output of the tracer|undefined value \w{1,40}:",
        cause="torch.jit.script and trace take only a part of Python: types that they can infer, tensors "
        "and tuples of them as inputs and outputs, no classes of one's own.",
        advice="Trace a wrapper that takes and returns tensors only (torch.jit.trace(model, example, "
        "strict=False) for dictionaries), or annotate the types. torch.export is what replaces TorchScript.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="parameter-assigned",
        title="Something that is no nn.Parameter was assigned where the model has a parameter",
        pattern=r"cannot assign '?[\w.]{1,80}'? (?:object )?(?:as|to) (?:parameter|buffer) '|"
        r"Cannot assign non-leaf Tensor to parameter|torch\.nn\.Parameter (?:or None )?(?:expected|required)",
        cause="A module keeps its parameters as nn.Parameter, and refuses a plain tensor under that name "
        "(also one that .cuda() or .to() of a parameter returned).",
        advice="Wrap it: layer.weight = torch.nn.Parameter(tensor). Or copy the values: with "
        "torch.no_grad(): layer.weight.copy_(tensor). For a state dict call load_state_dict.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="module-assigned",
        title="Something that is no module was assigned where the model has one",
        pattern=r"cannot assign '?[\w.]{1,80}'? (?:object )?(?:as|to) child module '|"
        r"is not a Module subclass",
        cause="The name belongs to a part of the model, and the value is none: a class that was not called, "
        "a state dict where the model belongs, or None of another type.",
        advice="Assign a module (self.head = nn.Linear(...)); load weights with load_state_dict.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="module-not-initialized",
        title="A model was used before nn.Module.__init__() ran",
        pattern=r"before Module\.__init__\(\) call|has no attribute '_(?:parameters|modules|buffers)'",
        cause="The class assigns layers before super().__init__() is called, or never calls it; or its "
        "name is spelled __init_ or _init__.",
        advice="Call super().__init__() in the first line of __init__.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="no-forward",
        title="The model has no forward()",
        pattern=r"is missing the required [\"']forward[\"'] function|in _forward_unimplemented",
        cause="A module without forward() was called: nn.ModuleList and nn.ModuleDict have none, and in a "
        "class forward may be misspelled or indented into another function.",
        advice="Call the layers in the list one by one, or use nn.Sequential. Compare the indentation of "
        "forward with that of __init__.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="argument-type",
        title="A function of torch got an argument of a type that it does not take",
        pattern=r"received an invalid combination of arguments|argument '\w{1,40}' (?:\(position \d{1,2}\) )?"
        r"must be \w{1,20}(?: of \w{1,20})?, not|expected Tensor as element \d{1,4} in argument|"
        r"new\(\): invalid data type|can'?t assign a numpy\.ndarray to a torch|must be a Tensor, not|"
        r"Unsupported type for argument|expected a Tensor argument",
        cause="Something that is no tensor was passed: the tuple of outputs of a model, a NumPy array, a "
        "text, a float where a whole number belongs (Python's / gives floats), or None.",
        advice="Print type(...) of the arguments. outputs[0] (or .logits) of a model with several outputs; "
        "torch.from_numpy(array); // instead of / for sizes.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="name-unknown",
        title="The code uses a name that was never set",
        pattern=r"NameError: (?:global )?name '\w{1,60}' is not defined|"
        r"UnboundLocalError: (?:cannot access )?local variable '\w{1,60}'",
        cause="An import or an assignment is missing, or stands in a branch that was not taken, such as an "
        "import inside try, or a model that is only created for some options.",
        advice="Look where the name is assigned, and whether that line runs; restart a notebook and run all "
        "its cells in order.",
        tie=ABOUT_CODE,
    ),
)
