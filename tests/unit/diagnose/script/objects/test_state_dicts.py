from __future__ import annotations

from tests.unit.diagnose.script.following import NET, check, follow


def test_state_dicts() -> None:
    check("state_dicts")


def test_patches_give_the_model_its_names() -> None:
    rows = {
        "model.load_state_dict(torch.load('compiled_cpu.pth'))": (
            "compiled_cpu.pth",
            (
                "model.load_state_dict({k.removeprefix('_orig_mod.'): v "
                "for k, v in torch.load('compiled_cpu.pth').items()})"
            ),
        ),
        "nn.DataParallel(model).load_state_dict(torch.load('sd_cpu.pth'))": (
            "sd_cpu.pth",
            "nn.DataParallel(model).module.load_state_dict(torch.load('sd_cpu.pth'))",
        ),
        "model.load_state_dict(torch.load('train_cpu.pth'))": (
            "train_cpu.pth",
            "model.load_state_dict(torch.load('train_cpu.pth')['model_state_dict'])",
        ),
        "model.load_state_dict(Net2())": ("sd_cpu.pth", ""),
    }
    found = {line: follow(f"{NET}{line}\n", file).diff for line, (file, _) in rows.items()}
    assert {line: diff for line, diff in found.items() if f"+{rows[line][1]}\n" not in diff and diff} == {}
    outer = (
        "class O(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = Net()\n"
    )
    diff = follow(f"{NET}{outer}O().load_state_dict(torch.load('sd_cpu.pth'))\n").diff
    assert "+O().load_state_dict({'net.' + k: v for k, v in torch.load('sd_cpu.pth').items()})" in diff


def test_what_is_no_state_dict_is_named_where_it_is_known_what_it_is() -> None:
    start = "TypeError: Expected state_dict to be dict-like"
    rows = {
        "[1]": f"{start}, got <class 'list'>.",
        "(1, 2)": f"{start}, got <class 'tuple'>.",
        "torch.zeros(2)": f"{start}, got <class 'torch.Tensor'>.",
        "model.state_dict().items()": start,
    }
    assert {given: follow(f"{NET}model.load_state_dict({given})\n").message for given in rows} == rows
