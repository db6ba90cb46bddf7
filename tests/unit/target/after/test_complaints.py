"""The complaints of torch, each in a message as torch 2.13 writes it."""

from __future__ import annotations

from inspector.target.after_load import Complaint

MESSAGES = {
    Complaint.SAME_DEVICE: "RuntimeError: Expected all tensors to be on the same device, but got mat1 is on "
    "cuda:0, different from other tensors on cpu (when checking argument in method wrapper_CUDA_addmm)",
    Complaint.NOT_EXPECTED: "RuntimeError: Tensor on device meta is not on the expected device cpu!",
    Complaint.FOREACH: "RuntimeError: Tensors of the same index must be on the same device and the same "
    "dtype except `step` tensors that can be CPU and float32/64, and optimizer states that can be bfloat16 "
    "for mixed-precision training",
    Complaint.CAPTURABLE: "AssertionError: If capturable=True, params, mu_products and state_steps must "
    "be on supported devices: ['cuda', 'xpu', 'hpu', 'privateuseone', 'xla'].",
    Complaint.BYTE_TENSOR: "TypeError: RNG state must be a torch.ByteTensor",
    Complaint.FIRST_DEVICE: "RuntimeError: module must have its parameters and buffers on device cuda:0 "
    "(device_ids[0]) but found one of them on device: cpu",
    Complaint.NO_DATA: "NotImplementedError: Cannot copy out of meta tensor; no data! Please use "
    "torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from meta to a different "
    "device.",
    Complaint.NO_OP: "UserWarning: for fc.weight: copying from a non-meta parameter in the checkpoint to a "
    "meta parameter in the current model, which is a no-op. (Did you mean to pass `assign=True` to assign "
    "items in the state dictionary to their corresponding key in the module instead of copying "
    "them in place?)",
}


def test_each_is_part_of_its_message_and_of_no_other() -> None:
    for complaint in Complaint:
        assert [known for known, message in MESSAGES.items() if complaint in message] == [complaint]
