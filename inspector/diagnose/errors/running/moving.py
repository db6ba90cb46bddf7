"""Messages about tensors that are somewhere else than the code expects: for NumPy, generators, meta."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import Context, ErrorKind, Said, Tied, Told
from inspector.diagnose.errors.ties import about_code, paths_on
from inspector.units import format_count

_CODE = about_code("Where the tensors of this file were saved does not decide it: the code that runs does.")


def _meta(context: Context) -> Tied:
    """Find tensors without data in this file."""
    paths = paths_on(context, ["meta"])
    if paths:
        here = (
            f"{format_count(len(paths), 'tensor')} of this file are on the meta device: it holds no data for "
            "them."
        )
        return Tied(fits="yes", here=here, paths=paths)
    return Tied(
        fits="no",
        here="No tensor of this file is on the meta device, they all have data: the model was built there "
        "and this file, or a part of it, was not loaded into it.",
    )


def _meta_said(told: Told) -> Said:
    """Explain who built the model on the meta device."""
    text = told.text.lower()
    if "no-op" in text:
        return Said(
            cause="The model was built on the meta device, and load_state_dict copies into its tensors, "
            "which have no place for data: nothing is loaded.",
            advice="Pass assign=True: model.load_state_dict(state_dict, assign=True), which puts the "
            "loaded tensors in place (torch 2.1). Or model.to_empty(device='cpu') before load_state_dict.",
        )
    if (
        "not on the expected device meta" in text
        or "we need a 'value'" in text
        or "on the meta device" in text
    ):
        return Said(
            cause="accelerate built the model on the meta device and found no weights for this tensor: its "
            "name is not in the checkpoint, or it was offloaded and the hooks that bring it back are gone.",
            advice="Compare the names in the checkpoint with those of the model. Load without device_map "
            "(low_cpu_mem_usage=False) to see which are missing, and move it yourself.",
        )
    return Said()


def _to_numpy(told: Told) -> Said:
    """Explain who called NumPy: in data loading the answer is another."""
    if "grad" in told.groups.get("grad", "").lower():
        return Said(
            title="A tensor with gradients was converted to NumPy",
            cause="The tensor takes part in the computation of gradients, which NumPy knows nothing of.",
            advice="tensor.detach().cpu().numpy(), or run the forward pass under torch.no_grad().",
        )
    if "bfloat16" in told.text.lower():
        return Said(
            title="NumPy has no bfloat16",
            cause="The tensor is bfloat16, a dtype that NumPy does not have.",
            advice="Convert it first: tensor.float().cpu().numpy().",
        )
    return Said()


MOVING_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="meta-tensor",
        title="A tensor is on the meta device and has no data",
        pattern=r"copy out of meta tensor|cannot be called on meta tensors|to a meta parameter in the "
        r"current model|"
        r"not on the expected device meta|tensor on device meta is not on the|"
        r"convert meta device type|is on the meta device, we need a|parameters? (?:is|are) on the "
        r"meta device|"
        r"data is not allocated yet|Not available for 'meta' device|"
        r"don'?t have .{0,40}storage.{0,40}meta|Cannot pickle meta storage",
        cause="Tensors on the meta device have a shape but no data. The model was built there "
        "(device='meta', init_empty_weights, low_cpu_mem_usage or device_map in from_pretrained), and was "
        "moved or used before all of its weights were loaded.",
        advice="Load the weights first: model.load_state_dict(state_dict, assign=True); or "
        "model.to_empty(device=...) and then load_state_dict. With transformers, pass "
        "low_cpu_mem_usage=False and no device_map, or do not call .to(device) on a model that has a "
        "device_map.",
        tie=_meta,
        say=_meta_said,
    ),
    ErrorKind(
        id="numpy-cuda",
        title="A GPU tensor was converted to NumPy",
        pattern=r"can'?t convert \w{1,10}(?::\d{1,3})? (?:device type )?tensor to numpy|can'?t convert CUDA "
        r"tensor to numpy|"
        r"can'?t call numpy\(\) on (?:Tensor|Variable) that requires (?P<grad>grad)|Got unsupported "
        r"ScalarType BFloat16|"
        r"Cannot convert (?:a )?CUDA tensor to numpy|numpy conversion for \w{0,40}FloatTensor is not "
        r"supported|"
        r"no attribute 'numpy'.{0,10}cuda",
        cause="NumPy works in the main memory only, and the tensor is on a GPU. np.array(), plt.plot(), "
        "sklearn and pandas convert their arguments in the same way.",
        advice="Copy it first: tensor.detach().cpu().numpy(). A list of tensors: [t.item() for t in losses].",
        tie=_CODE,
        say=_to_numpy,
    ),
    ErrorKind(
        id="generator-device",
        title="A random generator is on another device than the tensors",
        pattern=r"Expected a '?\w{1,8}'? device type for generator but found '?\w{1,8}|"
        r"Expected a '?\w{1,8}(?::\d{1,2})?'? generator device|device of the generator|"
        r"Cannot generate a \w{1,10} tensor from a generator of type",
        cause="A torch.Generator belongs to one device, and random numbers were wanted on another. "
        "torch.set_default_device('cuda') or set_default_tensor_type(torch.cuda.FloatTensor) also does "
        "this to DataLoader(shuffle=True), whose generator is on the CPU.",
        advice="Make the generator there: torch.Generator(device='cuda'), or pass none. For a DataLoader "
        "take the default tensor type back, or pass generator=torch.Generator(device='cuda').",
        tie=_CODE,
    ),
    ErrorKind(
        id="offloaded-model",
        title="A model that is spread over devices cannot be moved by hand",
        pattern=r"can'?t move a model that has some modules offloaded|'?\.to'? is not supported for "
        r"'?(?:4-bit|8-bit|4bit|8bit)|"
        r"modules? (?:are|is) dispatched on the CPU or the disk|current '?device_map'? had weights offloaded|"
        r"can'?t train a model that has been loaded (?:in|with)|Calling '?(?:cuda|to|half)\(\)'? is not "
        r"supported for",
        cause="accelerate (device_map=) or bitsandbytes (8-bit, 4-bit) has put the parts of the model "
        "where they belong, and .to(), .cuda() or .half() would break that. Parts that do not fit on the "
        "GPU were put on the CPU or on disk.",
        advice="Leave out .to(device), .cuda() and .half(): device_map has placed the model. For one device "
        "pass device_map={'': 0}, or load without device_map. If parts were offloaded, the GPU is too small "
        "for the model: take a smaller dtype or offload on purpose (offload_folder=...).",
        tie=_CODE,
    ),
    ErrorKind(
        id="fp16-on-cpu",
        title="A mode for GPUs was asked for on a machine without one",
        pattern=r"mixed precision training with AMP or APEX.{0,120}can only be used on CUDA|"
        r"fp16 mixed precision requires a GPU|setup doesn'?t support bf16|cannot run with 'cpu' device|"
        r"(?:bf16|fp16)\w{0,12}.{0,30} (?:can only be used|requires?|is only supported) (?:on|with)? ?(?:a "
        r")?(?:CUDA|GPU|Ampere)",
        cause="float16 (or bfloat16) mixed precision was asked for, and there is no GPU that has it: torch "
        "sees none, or it is too old for bfloat16 (before Ampere).",
        advice="Turn it off: fp16=False, bf16=False, mixed_precision='no', torch_dtype=torch.float32. If "
        "there is a GPU, checkpoint-inspector target explains why torch does not see it.",
        tie=_CODE,
    ),
)
