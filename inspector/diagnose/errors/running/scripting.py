"""Messages of TorchScript about Python code that it cannot compile or that failed in its interpreter."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import ErrorKind
from inspector.diagnose.errors.ties import about_code

_CODE = about_code("Nothing in this file brings it about: it is about the code that is compiled.")

SCRIPTING_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="script-interpreter",
        title="An operation failed inside a TorchScript model",
        pattern=r"The following operation failed in the TorchScript interpreter",
        cause="The error itself stands below, after the lines of the serialized code.",
        advice="Paste the whole text, with its last line.",
        tie=_CODE,
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
        tie=_CODE,
    ),
)
