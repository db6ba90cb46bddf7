"""Messages about what a tensor holds, or how it is stored, while a program runs."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import ErrorKind
from inspector.diagnose.errors.ties import about_code

_CODE = about_code("Nothing in this file decides it: it is about the tensors that the code makes.")

TENSOR_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="lengths-on-gpu",
        title="The lengths of packed sequences are on the GPU",
        pattern=r"'?lengths'? argument should be a 1D CPU int64 tensor|batch_sizes should always be on CPU",
        cause="pack_padded_sequence reads the lengths on the CPU, wherever the sequences are.",
        advice="pack_padded_sequence(x, lengths.cpu(), ...). Do not move lengths with the batch.",
        tie=_CODE,
    ),
    ErrorKind(
        id="resize-storage",
        title="Samples of a batch could not be joined: they differ in size or cannot be resized",
        pattern=r"Trying to resize storage that is not resizable|tensors? that can ?not be resized",
        cause="DataLoader workers join the samples in shared memory, and one sample has another size than "
        "the first, or is a view of memory that torch does not own (NumPy, a slice).",
        advice="num_workers=0 shows the sizes in its message. Give all samples one shape (Resize, padding, "
        "or a collate_fn), and return copies: torch.tensor(array), x.clone().",
        tie=_CODE,
    ),
    ErrorKind(
        id="set-data",
        title="The data of a tensor was replaced by one of another type or device",
        pattern=r"Attempted to call '?variable\.set_data|incompatible tensor type",
        cause=".data = ... cannot change the device or dtype of a tensor that takes part in gradients: the "
        "model was moved, or changed to half precision, while something still uses its old parameters "
        "(an optimizer, apex, a flattened RNN), or .data was assigned from another device.",
        advice="Move and cast the model before the optimizer is made and before apex or DDP wraps it. Write "
        "values with torch.no_grad() and copy_(), which converts.",
        tie=_CODE,
    ),
    ErrorKind(
        id="tensor-elements",
        title="A tensor has another number of elements or dimensions than the line expects",
        pattern=r"Boolean value of Tensor with (?:more than one|no) values? is ambiguous|"
        r"only (?:one element tensors|integer tensors of a single element) can be converted|"
        r"a Tensor with \d{1,12} elements cannot be converted to Scalar|iteration over a 0-d tensor|"
        r"len\(\) of a 0-d tensor|invalid index of a 0-dim tensor|too many indices for tensor of dimension|"
        r"Dimension out of range \(expected to be in range|item\(\) can only be called|"
        r"The truth value of an array with more than one element",
        cause="A single number was expected and the tensor has many (if tensor:, float(tensor), .item()), or "
        "a list was expected and the tensor is a single number.",
        advice="Print its shape. Use .any(), .all() or .mean() for one number, x.unsqueeze(0) for one more "
        "dimension, 'is not None' to ask whether there is a tensor.",
        tie=_CODE,
    ),
    ErrorKind(
        id="negative-dimension",
        title="A tensor with a negative size was wanted",
        pattern=r"Trying to create tensor with negative dimension",
        cause="A size was computed from the input or from settings, and came out below zero: the input is "
        "smaller than the layer needs, or a configuration has -1.",
        advice="Print the sizes in that line, and the shape of the input.",
        tie=_CODE,
    ),
)
