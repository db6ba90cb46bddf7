"""Messages about batches, targets and layouts: what a dataset returns, and what a loss is given."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import ErrorKind
from inspector.diagnose.errors.ties import about_code

_CODE = about_code("Nothing in this file decides it: it is about the data and the code that shapes it.")

BATCH_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="target-shape",
        title="The targets of the loss have another shape than the outputs",
        pattern=r"Target size \(torch\.Size\(.{1,60} must be the same as input size|"
        r"Expected input batch_size \(\d{1,9}\) to match target batch_size|multi-target not supported|"
        r"Using a target size \(torch\.Size|0D or 1D target tensor expected",
        cause="Each loss wants targets of one form: cross_entropy class numbers of shape (N) for outputs "
        "(N, C), BCE and MSE targets of the same shape as the outputs. A view(-1, ...) with a wrong number "
        "changes the size of the batch.",
        advice="Print both shapes. labels.squeeze(1) or labels.argmax(1) for cross_entropy, "
        "outputs.squeeze(1) or labels.unsqueeze(1) for BCE; x.flatten(1) instead of view.",
        tie=_CODE,
    ),
    ErrorKind(
        id="no-samples",
        title="The dataset is empty",
        pattern=r"num_samples should be a positive integer value, but got num_samples=0|"
        r"Found array with 0 sample|Found 0 (?:images|files|samples)|stack expects a non-empty TensorList|"
        r"expected a non-empty list of Tensors",
        cause="No sample was found: the folder of the data is wrong or empty, the files have another "
        "ending, or a filter removed all.",
        advice="Print len(dataset) and the path, and list what is in it.",
        tie=_CODE,
    ),
    ErrorKind(
        id="batch-elements",
        title="The samples cannot be joined into a batch",
        pattern=r"default_collate: batch must contain tensors|batch must contain tensors, numbers|"
        r"each element in list of batch should be of equal size",
        cause="The default collate_fn joins tensors, arrays and numbers of equal size. The dataset returns "
        "something else: a PIL image (ToTensor() is missing), None, or lists of different lengths.",
        advice="Return tensors of one shape (transforms.ToTensor(), padding), or pass a collate_fn.",
        tie=_CODE,
    ),
    ErrorKind(
        id="not-contiguous",
        title="view() does not work with the layout of the tensor",
        pattern=r"view size is not compatible with input tensor'?s size and stride",
        cause="The tensor was transposed, permuted or sliced, and view() cannot describe the result without "
        "a copy. Older code meets this with newer versions of torch, whose layers return other layouts.",
        advice="Use reshape(...) instead of view(...), or x.contiguous().view(...).",
        tie=_CODE,
    ),
    ErrorKind(
        id="overlapping-memory",
        title="A tensor whose elements share memory was written to",
        pattern=r"some elements of the input tensor and the written-to tensor refer to a single memory|"
        r"more than one element of the written-to tensor refers to a single memory",
        cause="expand() and broadcasting repeat one number in memory, and an operation in place would "
        "write to it several times.",
        advice="Make a copy first: x = x.expand(...).clone().",
        tie=_CODE,
    ),
    ErrorKind(
        id="not-a-number",
        title="The model computes NaN or infinity",
        pattern=r"tensor with all NaNs|probability tensor contains either '?inf|nan loss|loss is (?:nan|inf)|"
        r"contains NaN|found NaN|Function '\w{1,60}' returned nan values|input contains (?:NaN|infinity)",
        cause="Numbers overflowed or were undefined: float16 beyond 65,504 (run in float32 or bfloat16), a "
        "learning rate that is too high, weights that were damaged or not loaded (random or zero), or "
        "quantized weights read in another format.",
        advice="Look for the first: torch.autograd.set_detect_anomaly(True), and "
        "all(torch.isfinite(p).all() for p in model.parameters()) right after loading. Try float32 or "
        "bfloat16 instead of float16.",
        tie=_CODE,
    ),
)
