"""Each row of the table of compiled packages: a name that it knows, those it leaves alone, its source."""

from __future__ import annotations

from inspector.diagnose.packages import PACKAGES, packages_of

NAMES = {
    "flash-attn": "flash_attn.modules.mha.MHA",
    "mamba-ssm": "mamba_ssm.modules.mamba_simple.Mamba",
    "causal-conv1d": "causal_conv1d.causal_conv1d_interface.CausalConv1dFn",
    "xFormers": "xformers.components.attention.ScaledDotProduct",
    "Triton": "triton.runtime.jit.JITFunction",
    "TensorRT": "torch2trt.torch2trt.TRTModule",
    "spconv": "spconv.pytorch.conv.SubMConv3d",
    "MinkowskiEngine": "MinkowskiEngine.MinkowskiConvolution.MinkowskiConvolution",
    "the extensions of PyTorch Geometric": "torch_sparse.tensor.SparseTensor",
    "torch's quantized layers": "torch.ao.nn.quantized.dynamic.modules.linear.Linear",
    "torchao's int4 layout for tensor cores": "torchao.dtypes.affine_quantized_tensor.TensorCoreTiledLayout",
    "detectron2's modulated deformable convolution": "detectron2.layers.deform_conv.ModulatedDeformConv",
    "Detectron2": "detectron2.layers.batch_norm.FrozenBatchNorm2d",
    "the fused operations of StyleGAN2 for PyTorch": "models.stylegan2.op.fused_act.FusedLeakyReLU",
    "NVIDIA's StyleGAN code": "torch_utils.persistence._reconstruct_persistent_obj",
    "NVIDIA's apex": "apex.normalization.fused_layer_norm.FusedLayerNorm",
    "bitsandbytes": "bitsandbytes.nn.modules.Linear8bitLt",
    "DeepSpeed's operations": "deepspeed.ops.transformer.transformer.DeepSpeedTransformerLayer",
    "MMCV's operations": "mmcv.ops.deform_conv.DeformConv2dPack",
    "PyTorch3D": "pytorch3d.structures.meshes.Meshes",
    "TorchSparse": "torchsparse.nn.modules.conv.Conv3d",
}
STRANGERS = (
    "flash_attn",
    "flash_attention.MHA",
    "my.flash_attn.MHA",
    "models.fused_act",
    "utils.torch_utils.ModelEMA",
    "torch_utils.ModelEMA",
    "deepspeed.runtime.fp16.loss_scaler.LossScaler",
    "mmcv.runner.log_buffer.LogBuffer",
    "torchao.dtypes.affine_quantized_tensor.AffineQuantizedTensor",
    # Models that are only prepared for quantization hold it, and run anywhere.
    "torch.ao.nn.quantized.modules.functional_modules.FloatFunctional",
    "torch.nn.modules.linear.Linear",
    "torch.ao.nn.qat.modules.linear.Linear",
)


def test_each_row_knows_its_names() -> None:
    assert NAMES.keys() == {row.name for row in PACKAGES}
    for row, name in NAMES.items():
        assert [(found.name, names) for found, names in packages_of([name])] == [(row, [name])]


def test_other_names_are_left_alone() -> None:
    assert packages_of(STRANGERS) == []


def test_names_of_one_row_come_together() -> None:
    first, second = "apex.amp.A", "apex.parallel.B"
    assert [names for _, names in packages_of([first, "a.b.C", second])] == [[first, second]]


def test_rows_say_where_it_was_read_and_what_to_do() -> None:
    for row in PACKAGES:
        assert row.source.startswith("https://"), row.name
        assert row.install or row.instead, row.name
        for sentence in (row.install, row.instead):
            assert not sentence or sentence.endswith("."), row.name
        assert row.runs_on is not None or not row.fails, row.name
        assert row.modules or row.steps, row.name
