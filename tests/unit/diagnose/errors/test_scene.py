"""What a program was doing, from the frames, the code or the lines of a text."""

from __future__ import annotations

from inspector.diagnose.errors.paste import Scene, read_pasted, read_scene

PLACES = {
    "torch/serialization.py:load": "load",
    "torch/storage.py:_load_from_bytes": "nested-load",
    "torch/jit/_serialization.py:load": "script-load",
    "torch/serialization.py:save": "save",
    "torch/optim/adam.py:step": "optimizer",
    "torch/optim/optimizer.py:load_state_dict": "load-optimizer",
    "torch/optim/lr_scheduler.py:step": "scheduler",
    "torch/optim/lr_scheduler.py:wrapper": "",
    "torch/amp/grad_scaler.py:unscale_": "scaler",
    "torch/nn/utils/clip_grad.py:clip_grad_norm_": "clip",
    "torch/utils/data/_utils/pin_memory.py:pin_memory": "pin",
    "torch/utils/data/_utils/fetch.py:fetch": "data",
    "torch/nn/functional.py:cross_entropy": "loss",
    "torch/nn/functional.py:linear": "forward",
    "torch/_tensor.py:backward": "backward",
    "torch/nn/modules/module.py:load_state_dict": "load-weights",
    "torch/nn/modules/module.py:_apply": "move",
    "torch/nn/parallel/distributed.py:__init__": "wrap",
    "torch/nn/parallel/data_parallel.py:forward": "parallel",
    "torch/distributed/distributed_c10d.py:wrapper": "distributed",
}
CODE = {
    "optimizer.load_state_dict(x)": "load-optimizer",
    "model.load_state_dict(x)": "load-weights",
    "self.optimizer.step()": "optimizer",
    "loss.backward()": "backward",
    "loss = criterion(out, y)": "loss",
    "model.to(device)": "move",
    "x = 3": "",
}


def scene(text: str) -> Scene:
    pasted = read_pasted(text)
    return read_scene(pasted, pasted.raised[0] if pasted.raised else None)


def test_steps() -> None:
    amiss = []
    for place, step in PLACES.items():
        path, _, function = place.partition(":")
        inner = f'File "/site-packages/{path}", line 2, in {function}'
        text = f'File "a.py", line 1, in f\nx\n{inner}\nRuntimeError: no'
        if scene(text).step != step:
            amiss.append((place, scene(text).step))
    for code, step in CODE.items():
        frame = f'File "a.py", line 1, in f\n{code}\nRuntimeError: no'
        loose = f"{code}\nRuntimeError: no"
        if (scene(frame).step, scene(loose).step) != (step, step):
            amiss.append((code, scene(frame).step))
    assert amiss == []


def test_a_load_within_a_pickle_counts() -> None:
    text = (
        'File "a.py", line 1, in f\npickle.load(f)\n'
        'File "/site-packages/torch/storage.py", line 2, in _load_from_bytes\nreturn torch.load(b)\n'
        'File "/site-packages/torch/serialization.py", line 3, in load\nRuntimeError: no'
    )
    found = scene(text)
    assert (found.step, found.code) == ("nested-load", "pickle.load(f)")


def test_serialized_code() -> None:
    text = (
        "RuntimeError: The following operation failed in the TorchScript interpreter.\n"
        "Traceback of TorchScript, serialized code (most recent call last):\n"
        '  File "code/__torch__/net.py", line 3, in forward\n    torch.add(x, y)\nRuntimeError: no'
    )
    assert (scene(text).step, scene(text).yours) == ("script", None)


def test_layers_packages_and_lines() -> None:
    text = (
        'File "a.py", line 1, in f\nout = net(x)\nFile "/site-packages/timm/m.py", line 2, in forward\n'
        'File "/site-packages/torch/nn/modules/conv.py", line 3, in forward\nRuntimeError: no'
    )
    found = scene(text)
    assert (found.layer, found.package, found.code, found.has_frames) == (
        "conv",
        "timm",
        "out = net(x)",
        True,
    )
    assert scene("RuntimeError: no").code == ""
    assert read_scene(read_pasted('File "a.py", line 1, in f\nloss.backward()'), None).step == "backward"
    only = 'RuntimeError: no\nFile "/site-packages/torch/nn/functional.py", line 3, in embedding'
    assert scene(only).layer == "embedding"
