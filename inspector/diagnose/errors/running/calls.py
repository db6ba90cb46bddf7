"""Messages of torch's own functions about the types of their arguments, and of Python about names."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import ErrorKind
from inspector.diagnose.errors.ties import about_code

_CODE = about_code("Nothing in this file decides it: it is about the line of code.")

CALL_ERRORS: tuple[ErrorKind, ...] = (
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
        tie=_CODE,
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
        tie=_CODE,
    ),
)
