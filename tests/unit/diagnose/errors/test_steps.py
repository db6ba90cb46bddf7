"""Who was left behind when tensors are on two devices."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from inspector.diagnose.errors.explanation import Explanation
from inspector.diagnose.errors.paste import read_pasted
from inspector.diagnose.errors.running import Disorder, find_disorder

SAME = (
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, {} and {}!"
)
WITH = SAME + " (when checking argument for argument {} in method wrapper_CUDA_{})"


def below(error: str, *frames: str) -> Explanation:
    """The answer to an error with these frames, each as `path:function code`."""
    lines = []
    for frame in frames:
        place, _, code = frame.partition(" ")
        path, _, function = place.partition(":")
        lines.append(f'  File "{path}", line 7, in {function}\n    {code}')
    return explain_error("\n".join([*lines, error]), None)


ADAM = "/v/site-packages/torch/optim/adam.py:step exp_avg.mul_(beta1)"
LINEAR = "/v/site-packages/torch/nn/modules/linear.py:forward F.linear(input)"
LOSS = "/v/site-packages/torch/nn/functional.py:nll_loss x"
EMBED = "/v/site-packages/torch/nn/functional.py:embedding x"
CLIP = "/v/site-packages/torch/nn/utils/clip_grad.py:clip_grad_norm_ x"
# error, frames, words of the title or cause, words of the advice
ANSWERS = (
    (SAME.format("cuda:0", "cpu"), (ADAM,), "optimizer was loaded before", "load the optimizer last"),
    (WITH.format("cuda:0", "cpu", "state_steps", "_fused_adamw_"), (), "step counters", "fused="),
    (SAME.format("cuda:0", "cpu"), (LOSS,), "The loss got tensors", "targets.to(device)"),
    (
        WITH.format("cuda:0", "cpu", "weight", "nll_loss_forward"),
        (LOSS,),
        "weights of the loss",
        "criterion.to",
    ),
    (
        WITH.format("cuda:0", "cpu", "target", "nll_loss_forward"),
        (),
        "The loss got tensors",
        "targets.to(device)",
    ),
    (
        WITH.format("cuda:0", "cpu", "mat1", "addmm"),
        (LINEAR,),
        "The input is on the CPU",
        "inputs.to(device)",
    ),
    (WITH.format("cpu", "cuda:0", "mat1", "addmm"), (LINEAR,), "The model is on the CPU", "model.to(device)"),
    (WITH.format("cuda:0", "cpu", "weight", "_cudnn_convolution"), (), "The model is on the CPU", "model.to"),
    (
        WITH.format("cpu", "cuda:0", "weight", "_slow_conv2d_forward"),
        (),
        "The input is on the CPU",
        "inputs.to",
    ),
    (WITH.format("cuda:0", "cpu", "index", "index_select"), (EMBED,), "token ids", "input_ids.to"),
    (SAME.format("cuda:0", "cpu"), (CLIP,), "gradients", "model.to(device)"),
    (SAME.format("cuda:0", "cuda:1"), (LINEAR,), "on two GPUs", "map_location='cuda:0'"),
    (WITH.format("cuda:0", "cpu", "tensors", "cat"), (), "one was made on the CPU", "device=x.device"),
    (SAME.format("cuda:0", "cpu"), ("a.py:f x = y + torch.zeros(3)",), "one was made on the CPU", "x.device"),
    (SAME.format("cuda:0", "cpu"), (), "CPU and one on a GPU", "model.to(device)"),
    (
        (
            "RuntimeError: Expected all tensors to be on the same device, but got mat1 is on cpu, different "
            "from other tensors on cuda:0 (when checking argument in method wrapper_CUDA_addmm)"
        ),
        (),
        "The input is on the CPU",
        "inputs.to(device)",
    ),
    (
        (
            "RuntimeError: Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be "
            "the same"
        ),
        (),
        "The input is on the CPU",
        "inputs.to(device)",
    ),
    (
        (
            "RuntimeError: Input type (torch.cuda.FloatTensor) and weight type (torch.HalfTensor) should be "
            "the same"
        ),
        (),
        "The model is on the CPU",
        "model.to(device)",
    ),
    (
        (
            "RuntimeError: Input and parameter tensors are not at the same device, found input tensor at cpu "
            "and parameter tensor at cuda:0"
        ),
        (),
        "The input is on the CPU",
        "inputs.to(device)",
    ),
    (
        (
            "RuntimeError: Input and parameter tensors are not at the same device, found input tensor at xla "
            "and parameter tensor at odd"
        ),
        (),
        "torch never moves",
        "model.to(device)",
    ),
    (
        (
            "RuntimeError: Input and hidden tensors are not at the same device, found input tensor at cuda:0 "
            "and hidden tensor at cpu"
        ),
        (),
        "hidden state",
        "device=x.device",
    ),
    (
        "RuntimeError: indices should be either on cpu or on the same device as the indexed tensor (cpu)",
        (),
        "indices or the mask",
        "index.to(tensor.device)",
    ),
)


def test_who_was_left_behind() -> None:
    amiss = []
    for error, frames, about, advice in ANSWERS:
        found = below(error, *frames)
        if about not in f"{found.title} {found.cause}" or advice not in found.advice:
            amiss.append((error, frames, found.title, found.cause, found.advice))
    assert amiss == []


def test_serialized_code() -> None:
    text = (
        "Traceback of TorchScript, serialized code (most recent call last):\n"
        '  File "code/__torch__/net.py", line 3, in forward\n    torch.add(x, y)\n'
        + SAME.format("cuda:0", "cpu")
    )
    assert "Trace the model again" in explain_error(text, None).advice


def test_the_lines_that_the_text_shows_are_swapped() -> None:
    code = "15 optimizer.load_state_dict(ckpt['opt'])\n18 model.cuda()\n"
    found = explain_error(
        f"{code}Traceback:\n{below_adam()}",
        None,
    )
    assert "(line 15) before the model is moved (line 18)" in found.cause
    assert found.advice == "Swap the two: model.cuda(); optimizer.load_state_dict(ckpt['opt'])."
    bare = explain_error(code.replace("15 ", "").replace("18 ", "") + below_adam(), None)
    assert "(optimizer.load_state_dict(ckpt['opt'])) before" in bare.cause


def below_adam() -> str:
    frame = '  File "/v/site-packages/torch/optim/adam.py", line 7, in step\n    x\n'
    return frame + SAME.format("cuda:0", "cpu")


LOAD = "optimizer.load_state_dict(ckpt['opt'])"
MOVE = "model.to(device)"


def test_only_the_wrong_order_is_reported() -> None:
    wrong = Disorder(load=LOAD, move=MOVE, load_line=0, move_line=0)
    assert find_disorder(read_pasted(f"x = 1\n{LOAD}\ny = 2\n{MOVE}\n")) == wrong
    assert find_disorder(read_pasted(f"{MOVE}\n{LOAD}\n")) is None
    assert find_disorder(read_pasted(LOAD)) is None
    assert find_disorder(read_pasted(f"model.load_state_dict(x)\n{MOVE}")) is None


def test_numbers_of_lines_are_read() -> None:
    found = find_disorder(read_pasted(f"15 {LOAD}\n---> 18 self.model.cuda()"))
    assert found is not None
    assert (found.load_line, found.move_line, found.move) == (15, 18, "self.model.cuda()")
