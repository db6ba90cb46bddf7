from __future__ import annotations

from inspector.diagnose.script.objects.layers import LAYERS


def own(name: str, **arguments: object) -> object:
    return LAYERS[name].own(arguments)


def test_parameters_of_layers() -> None:
    rows = [
        (own("Linear", in_features=4, out_features=8), {"weight": (8, 4), "bias": (8,)}),
        (own("Linear", in_features=4, out_features=8, bias=False), {"weight": (8, 4)}),
        (own("Linear", in_features=4, out_features=8, bias=...), None),
        (own("Linear", out_features=True), {"weight": None, "bias": None}),
        (own("Bilinear", out_features=3), {"weight": None, "bias": (3,)}),
        (own("Conv2d", in_channels=4, out_channels=8, kernel_size=3), {"weight": (8, 4, 3, 3), "bias": (8,)}),
        (own("Conv2d", in_channels=4, out_channels=8, kernel_size=(1, 2), groups=2)["weight"], (8, 2, 1, 2)),
        (own("Conv1d", in_channels=4, out_channels=8, kernel_size=(1, 2))["weight"], None),
        (own("ConvTranspose2d", in_channels=4, out_channels=8, kernel_size=2)["weight"], (4, 8, 2, 2)),
        (own("BatchNorm2d", num_features=3, affine=False, track_running_stats=False), {}),
        (own("BatchNorm2d", num_features=3)["num_batches_tracked"], ()),
        (own("BatchNorm2d", affine=...), None),
        (own("InstanceNorm2d", num_features=3), {}),
        (own("LayerNorm", normalized_shape=8), {"weight": (8,), "bias": (8,)}),
        (own("LayerNorm", normalized_shape=..., elementwise_affine=False), {}),
        (own("LayerNorm", elementwise_affine=...), None),
        (own("RMSNorm", normalized_shape=8), {"weight": (8,)}),
        (own("GroupNorm", num_channels=4), {"weight": (4,), "bias": (4,)}),
        (own("GroupNorm", affine=False), {}),
        (own("GroupNorm", affine=...), None),
        (own("Embedding", num_embeddings=10, embedding_dim=3), {"weight": (10, 3)}),
        (own("Embedding", num_embeddings=10), {"weight": None}),
        (own("PReLU"), {"weight": (1,)}),
        (own("PReLU", num_parameters=...), {"weight": None}),
        (own("ReLU"), {}),
        (own("CrossEntropyLoss", weight=...), {"weight": None}),
        (own("CrossEntropyLoss"), {}),
        (own("BCEWithLogitsLoss", pos_weight=...), {"pos_weight": None}),
    ]
    assert [row for row in rows if row[0] != row[1]] == []


def test_parameters_of_recurrent_layers() -> None:
    found = own("LSTM", input_size=3, hidden_size=5, num_layers=2, bidirectional=True)
    assert found["weight_ih_l0"] == (20, 3)
    assert found["weight_ih_l1_reverse"] == (20, 10)
    assert len(found) == 16
    assert own("GRU", input_size=3, hidden_size=5, bias=False) == {
        "weight_ih_l0": (15, 3),
        "weight_hh_l0": (15, 5),
    }
    assert own("RNN", num_layers=2)["weight_ih_l1"] is None
    assert own("LSTM", num_layers=1000) is None
    assert own("LSTM", bidirectional=...) is None
