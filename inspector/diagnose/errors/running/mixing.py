"""Messages about tensors of a running model: on different devices, or with unfit content or storage.

The wordings: types by name up to torch 1.0 (`torch.cuda.FloatTensor`), backends in 1.1 to 1.4, devices since
1.5, "found at least two devices" since 1.7, the arguments one by one since 2.9.
"""

from __future__ import annotations

from inspector.diagnose.errors.explanation import Context, ErrorKind, Tied, Told
from inspector.diagnose.errors.running.apart import tie_apart
from inspector.diagnose.errors.running.dtypes import are_apart, read_type
from inspector.diagnose.errors.running.steps import say_apart
from inspector.diagnose.errors.ties import ABOUT_CODE, devices_of, paths_on
from inspector.diagnose.listing import listed
from inspector.model.findings import Fix
from inspector.model.roles.device_types import DEVICE_TYPES

_T = r"[a-z0-9_:. ]{1,40}"
_DEVICE = rf"(?:{'|'.join(DEVICE_TYPES)})(?::\d{{1,3}})?"


def _types_apart(told: Told) -> bool:
    """Return whether the types that a message names are on different devices, or it names none."""
    pair = [told.groups.get(key) or told.groups.get(f"{key}2", "") for key in ("a", "b")]
    return not all(pair) or are_apart(read_type(pair[0]), read_type(pair[1]))


def _parallel(context: Context) -> Tied:
    """Find the weights that are not on the first device of DataParallel."""
    home, stray = context.groups["home"], context.groups["stray"]
    paths = paths_on(context, [stray])
    if paths and stray != "cpu":
        return Tied(
            fits="yes",
            here=f"Tensors of this file were saved on {stray}; without map_location they are loaded there.",
            paths=paths,
            fix=Fix(rule=f"{stray}={home}"),
        )
    devices = devices_of(context, home.partition(":")[0])
    held = f"tensors on {stray}" if paths else f"nothing on {stray}"
    others = f"; its GPU tensors are on {listed(devices)}" if devices else ""
    here = f"This file holds {held}{others}. Your code put the model there."
    return Tied(fits="unknown" if paths else "no", here=here)


MIXING_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="data-parallel-device",
        title="DataParallel needs the whole model on its first GPU",
        pattern=rf"must have its parameters and buffers on device '?(?P<home>{_DEVICE})'? "
        rf"?\(device_ids\[0\]\) but found one of them on device: ?'?(?P<stray>{_DEVICE})",
        finding="mixed-devices",
        cause="nn.DataParallel replicates the model from the first GPU in device_ids to the others, so all "
        "weights must be on that GPU when forward() is called.",
        advice="Call model.to('cuda:0') (the first of device_ids) before wrapping it, and load the "
        "checkpoint with map_location='cuda:0'.",
        tie=_parallel,
    ),
    ErrorKind(
        id="same-device",
        title="One operation got tensors on different devices",
        pattern=r"Expected all tensors to be on the same device|"
        rf"found (?:at least )?two devices,? ({_DEVICE})|"
        r"expected (?:both inputs|all inputs|input and grid|tensors?|self and mask) to be on (?:the )?same "
        r"device|expected to be in the same device, but got|indices should be (?:either )?on '?(?:cpu|the "
        r"same)|"
        r"is on '?(?:cpu|gpu|cuda)'?, but expected (?:it|them) to be on '?(?:cpu|gpu|cuda)|"
        rf"but got \w{{1,30}} is on {_DEVICE}, different from other|"
        r"(?:input|hidden|parameter) tensors? (?:is|are) not at the same device|"
        r"tensors are not at the same device, found|to have the same device (?:type|as)|"
        r"need to be on the same device|must be on the same device|expected (?:a )?device: ?[a-z:0-9]{1,10} "
        r"but got|must be on the current device|expected [\w, ]{1,40} to be on the same device|"
        r"expected CPU(?: tensor)? \(got CUDA|expected CUDA(?: tensor)? \(got CPU|"
        r"legacy constructor expects device type|"
        rf"on device '?{_DEVICE}'? to (?:a graph|an? \w{{1,20}}) on device '?{_DEVICE}",
        finding="mixed-devices",
        cause="One operation got a tensor on the CPU and one on a GPU, or from two GPUs. torch never moves "
        "tensors by itself.",
        advice="Move the model once (model.to(device)), then everything that goes into it: batches, masks, "
        "hidden states, the loss with its class weights. Load the optimizer state after moving the model.",
        tie=tie_apart,
        say=say_apart,
    ),
    ErrorKind(
        id="same-device-by-type",
        title="One operation got a CPU tensor and a GPU tensor",
        pattern=rf"Input type \(?(?P<a>{_T}?)\)? and (?:weight|bias) type \(?(?P<b>{_T}?)\)? should be the "
        rf"same|"
        r"expected (?:object of )?(?:scalar )?type (?:torch\.)?[\w.]{1,40} but (?:got|found) type "
        r"(?:torch\.)?(?:cuda\.|CUDA)|"
        r"but type (?P<a2>torch\.[\w.]{1,40}) does not equal (?P<b2>torch\.[\w.]{1,40})|"
        r"expected type torch\.(?:cuda\.)?\w{1,40}(?:Type)? but got torch\.(?:cuda\.)?\w{1,40}|"
        r"expected object of (?:device type|backend|type) [\w.]{1,40} but (?:got|found) "
        r"(?:device type|backend|type) |"
        r"expected (?:backend|device) [\w:]{1,10} and dtype \w{1,20} but got (?:backend|device)|"
        r"received an invalid combination of arguments - got \([^)]{0,200}torch\.cuda\.\w{1,30}Tensor|"
        r"a tensor was not cuda|"
        r"expected torch\.(?:cuda\.)?\w{1,30}Tensor \(got torch\.(?:cuda\.)?\w{1,30}Tensor\)",
        finding="mixed-devices",
        cause="torch.cuda.FloatTensor is a tensor on a GPU, torch.FloatTensor one on the CPU: the model is "
        "on one and its input, or the optimizer state, on the other.",
        advice="Move both to one device: model.to(device) and inputs.to(device). When resuming, move the "
        "model before optimizer.load_state_dict.",
        tie=tie_apart,
        when=_types_apart,
        say=say_apart,
    ),
    ErrorKind(
        id="different-gpus",
        title="One operation got tensors on two GPUs",
        pattern=r"arguments are located on different GPUs|some of weight/gradient/input tensors are located "
        r"on different GPUs|all tensors must be on devices\[0\]|tensors are on different GPUs",
        finding="mixed-devices",
        cause="The file was saved on one GPU and the model is on another; torch.load put each tensor back "
        "on the GPU it came from.",
        advice="Load with map_location='cpu', or to the GPU in use, and move the model before "
        "optimizer.load_state_dict.",
        tie=tie_apart,
        say=say_apart,
    ),
    ErrorKind(
        id="lengths-on-gpu",
        title="The lengths of packed sequences are on the GPU",
        pattern=r"'?lengths'? argument should be a 1D CPU int64 tensor|batch_sizes should always be on CPU",
        cause="pack_padded_sequence reads the lengths on the CPU, wherever the sequences are.",
        advice="pack_padded_sequence(x, lengths.cpu(), ...). Do not move lengths with the batch.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="resize-storage",
        title="Samples of a batch could not be joined: they differ in size or cannot be resized",
        pattern=r"Trying to resize storage that is not resizable|tensors? that can ?not be resized",
        cause="DataLoader workers join the samples in shared memory, and one sample has another size than "
        "the first, or is a view of memory that torch does not own (NumPy, a slice).",
        advice="num_workers=0 shows the sizes in its message. Give all samples one shape (Resize, padding, "
        "or a collate_fn), and return copies: torch.tensor(array), x.clone().",
        tie=ABOUT_CODE,
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
        tie=ABOUT_CODE,
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
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="negative-dimension",
        title="A tensor with a negative size was wanted",
        pattern=r"Trying to create tensor with negative dimension",
        cause="A size was computed from the input or from settings, and came out below zero: the input is "
        "smaller than the layer needs, or a configuration has -1.",
        advice="Print the sizes in that line, and the shape of the input.",
        tie=ABOUT_CODE,
    ),
)
