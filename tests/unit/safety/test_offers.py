from __future__ import annotations

from inspector.model.checkpoint import Checkpoint
from inspector.safety.offers import Offers, offers_for, withheld_reason
from tests.builders.pickles import call, list_, name, new
from tests.sweep import table
from tests.unit.model.making import by_hand


def offers(made: bytes, *names: str) -> Offers:
    return offers_for(by_hand(made), names)


@table(
    ("made", "asked", "offered", "packages"),
    [
        (new("mine.Net"), "mine.Net", True, ("mine",)),
        (new("__main__.Net"), "__main__.Net", True, ("__main__",)),
        (new("torchvision.models.resnet.ResNet"), "torchvision.models.resnet.ResNet", True, ("torchvision",)),
        (call("mine.Net"), "mine.Net", False, ()),
        (name("mine.Net"), "mine.Net", False, ()),
        (call("argparse.Namespace"), "argparse.Namespace", True, ()),
        (name("argparse.Namespace"), "argparse.Namespace", True, ()),
        (new("torch.nn.modules.linear.Linear"), "torch.nn.modules.linear.Linear", True, ()),
        (name("torch.nn.modules.linear.Linear"), "torch.nn.modules.linear.Linear", True, ()),
        (call("torch.nn.modules.linear.Linear"), "torch.nn.modules.linear.Linear", False, ()),
        (new("torch.nn.modules.linear.Mine"), "torch.nn.modules.linear.Mine", False, ()),
        (
            new("torchevil.nn.modules.linear.Linear"),
            "torchevil.nn.modules.linear.Linear",
            True,
            ("torchevil",),
        ),
        (call("numpy.core.multiarray.scalar"), "numpy.core.multiarray.scalar", True, ()),
        (new("numpy.Mine"), "numpy.Mine", False, ()),
        (new("logging.Logger"), "logging.Logger", False, ()),
        (new("test.Net"), "test.Net", False, ()),
        (new("__builtin__.set"), "builtins.set", True, ()),
        (new("mine.os.Popen"), "mine.os.Popen", False, ()),
        (new("mine.class.Net"), "mine.class.Net", False, ()),
        (new("m\u0456ne.Net"), "m\u0456ne.Net", False, ()),
        (new("mine"), "mine", False, ()),
    ],
)
def test_who_is_offered(made: bytes, asked: str, offered: bool, packages: tuple[str, ...]) -> None:
    found = offers(made, asked)
    assert found == Offers(
        offered=(asked,) if offered else (), packages=packages, withheld=() if offered else (asked,)
    )


def test_order_is_kept_and_packages_are_named_once() -> None:
    made = list_(new("b.X"), call("b.f"), new("a.Y"), new("b.Z"))
    found = offers(made, "b.X", "b.f", "a.Y", "b.Z")
    assert found == Offers(offered=("b.X", "a.Y", "b.Z"), packages=("b", "a"), withheld=("b.f",))


def test_reasons_name_calls_first() -> None:
    made: Checkpoint = by_hand(list_(call("b.f"), name("b.g")))
    assert withheld_reason(made, ("b.f", "b.g")).startswith("It calls b.f with arguments")
    assert withheld_reason(made, ("b.g",)).startswith("It refers to b.g, which may be functions")
    many = tuple(f"b.g{number}" for number in range(11))
    assert "b.g7 and 3 more" in withheld_reason(made, many)
