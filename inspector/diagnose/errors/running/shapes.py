"""Messages about shapes, gradients, batches, targets and layouts: the file is seldom to blame."""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import Context, ErrorKind, Said, Tied, Told
from inspector.diagnose.errors.ties import ABOUT_CODE
from inspector.units import format_count, format_shape

_MOST_SHOWN = 4


def _of_input(context: Context) -> Tied:
    """Find the weights of this file that have the shape which the message names."""
    said = tuple(int(part) for part in context.groups.get("shape", "").replace(" ", "").split(",") if part)
    if not said:
        return Tied(
            fits="unknown",
            here="This file's weights have the shapes that the model was built with; the input does not fit.",
        )
    wanted = {said, said[::-1]} if len(said) == 2 else {said}
    found = [tensor.path for tensor in context.checkpoint.tensors if tensor.shape in wanted]
    if not found:
        return Tied(fits="no", here=f"No tensor of this file has the shape {format_shape(said)}.")
    here = (
        f"{format_count(len(found), 'weight')} of this file {'has' if len(found) == 1 else 'have'} that "
        "shape."
    )
    return Tied(fits="unknown", here=f"{here} The input that they get does not fit.", paths=found)


def _are_shards(text: str) -> bool:
    """Return whether two sizes are those of flat shards: large, and one nearly a multiple of the other."""
    match = _TWO_SIZES.search(text)
    if match is None:
        return False
    small, large = sorted((int(match[1]), int(match[2])))
    times = round(large / small) if small >= _SHARD_ELEMENTS else 0
    return times > 1 and abs(large - times * small) <= times


_TWO_SIZES = re.compile(r"tensor a \((\d{1,15})\) must match the size of tensor b \((\d{1,15})\)")
_SHARD_ELEMENTS = 100_000


def _sizes(told: Told) -> Said:
    """Explain where two sizes met: in an optimizer they are its state and the parameters."""
    resumed = not told.scene.has_frames and _RESUMED.search(told.text) is not None
    if _are_shards(told.text):
        return Said(
            title="Optimizer state was cut for another number of processes",
            cause="Two flat tensors of many elements meet, and one is about so many times as long as the "
            "other: FSDP and DeepSpeed's ZeRO cut parameters and optimizer state evenly over the processes, "
            "and the checkpoint was written by another number of them.",
            advice="Resume with the same number of GPUs, or from a checkpoint in one piece: a full state "
            "dict of FSDP (FullStateDictConfig), zero_to_fp32.py or ds_to_universal for DeepSpeed. Or skip "
            "the optimizer's state.",
        )
    if told.scene.step not in {"optimizer", "scaler", "load-optimizer"} and not resumed:
        return Said()
    return Said(
        title="Optimizer state belongs to parameters of other shapes",
        cause="The state of the optimizer is stored by the order of the parameters, and it was loaded for "
        "others: the model has changed, or its parameters come in another order than when it was saved. "
        "load_state_dict checks only their number.",
        advice="Build model and optimizer exactly as in the saved run, with the parameters in the same "
        "order. Or skip the optimizer's state.",
    )


_RESUMED = re.compile(r"\b(?:resum|load)\w{0,6} (?:\w{1,20} ){0,3}optimizer", re.IGNORECASE)
_SHAPE = r"\[?(?P<shape>\d{1,9}(?:, ?\d{1,9}){1,6})\]?"


SHAPE_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="input-shape",
        title="The input has another shape than the layer expects",
        pattern=rf"mat1 and mat2 shapes cannot be multiplied|size mismatch, m1: \[|Given groups=\d{{1,6}}, "
        rf"(?:weight of size|expected weight)(?: \[)?{_SHAPE}?|"
        r"Expected \d(?:\w|-| |\(|\)){1,40}input|input\.size\(-1\) must be equal to input_size|Given "
        r"normalized_shape=|"
        r"running_(?:mean|var) should contain \d{1,9} elements|shape '\[[-\d, ]{1,60}\]' is invalid for "
        r"input of size|"
        r"Given input size: ?\(|Kernel size can'?t be greater than actual input|Calculated padded input size|"
        r"expects? (?:a )?(?:\d-?D|\d-dimensional)|Expected more than 1 value per channel",
        cause="The weights have the shape the model was built with, and the input does not fit it: the "
        "number of channels, the size of the picture, a missing batch dimension, or a layer that was "
        "replaced.",
        advice="Print x.shape before that layer and compare it with the weight's shape. A single picture "
        "needs a batch dimension: x.unsqueeze(0); a gray picture three channels: x.expand(-1, 3, -1, -1).",
        tie=_of_input,
    ),
    ErrorKind(
        id="sizes-differ",
        title="Two tensors have sizes that do not go together",
        pattern=r"size of tensor a \(\d{1,12}\) must match the size of tensor b|Sizes of tensors must match "
        r"except in dimension|"
        r"output with shape \[[\d, ]{0,80}\] doesn'?t match the broadcast shape|shape mismatch: value tensor|"
        r"The expanded size of the tensor|stack expects each tensor to be equal size|inconsistent tensor "
        r"size|invalid argument \d: sizes do not match",
        cause="One operation got tensors whose sizes do not fit: inputs of different lengths, positions "
        "beyond the table of the model, or a layer whose output was changed.",
        advice="Print the shapes in that line. For a batch of different sizes, pad in collate_fn.",
        tie=ABOUT_CODE,
        say=_sizes,
    ),
    ErrorKind(
        id="index-range",
        title="An index is out of range",
        pattern=r"index out of range in self|Target -?\d{1,12} is out of bounds|index -?\d{1,12} is out of "
        r"bounds for dimension|"
        r"Class values must be smaller than num_classes",
        cause="A token id is not below the number of rows of the embedding, or a class label not below the "
        "number of classes: the tokenizer or the labels belong to another model than the weights.",
        advice="Compare ids.max() with embedding.num_embeddings, and labels.min() and labels.max() with "
        "the outputs. After adding tokens call model.resize_token_embeddings(len(tokenizer)).",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="changed-in-place",
        title="A tensor that backward() needs was changed in place",
        pattern=r"modified by an inplace operation",
        cause="autograd kept a tensor for the gradient, and the code changed it before backward(): by +=, "
        "by x[...] = y, by a method such as relu_(), or by an optimizer's step between forward and "
        "backward.",
        advice="Write a new tensor instead (x = x + y, x.clone() before the change), and call backward() "
        "before the step. torch.autograd.set_detect_anomaly(True) shows the line of the forward pass.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="no-grad",
        title="There is nothing to compute gradients for",
        pattern=r"element 0 of tensors does not require grad|Trying to backward through the graph a second "
        r"time|"
        r"leaf Variable that requires grad|Inference tensors cannot be "
        r"saved for backward|"
        r"RNN backward can only be called in training mode|does not have a grad_fn|grad can be implicitly "
        r"created only for",
        cause="backward() found no way from the loss to the parameters, or one that is used up: "
        "the model was frozen or loaded under torch.no_grad(), the loss was detached (.item(), "
        ".detach(), .numpy()), or backward() was called twice.",
        advice="Check any(p.requires_grad for p in model.parameters()) after loading, that no "
        "@torch.no_grad() stands above the training step, and model.train(). Change weights only under "
        "torch.no_grad(), by copy_().",
        tie=ABOUT_CODE,
    ),
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
        tie=ABOUT_CODE,
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
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="batch-elements",
        title="The samples cannot be joined into a batch",
        pattern=r"default_collate: batch must contain tensors|batch must contain tensors, numbers|"
        r"each element in list of batch should be of equal size",
        cause="The default collate_fn joins tensors, arrays and numbers of equal size. The dataset returns "
        "something else: a PIL image (ToTensor() is missing), None, or lists of different lengths.",
        advice="Return tensors of one shape (transforms.ToTensor(), padding), or pass a collate_fn.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="not-contiguous",
        title="view() does not work with the layout of the tensor",
        pattern=r"view size is not compatible with input tensor'?s size and stride",
        cause="The tensor was transposed, permuted or sliced, and view() cannot describe the result without "
        "a copy. Older code meets this with newer versions of torch, whose layers return other layouts.",
        advice="Use reshape(...) instead of view(...), or x.contiguous().view(...).",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="overlapping-memory",
        title="A tensor whose elements share memory was written to",
        pattern=r"some elements of the input tensor and the written-to tensor refer to a single memory|"
        r"more than one element of the written-to tensor refers to a single memory",
        cause="expand() and broadcasting repeat one number in memory, and an operation in place would "
        "write to it several times.",
        advice="Make a copy first: x = x.expand(...).clone().",
        tie=ABOUT_CODE,
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
        tie=ABOUT_CODE,
    ),
)
