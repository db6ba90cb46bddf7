"""The styles for whole modules, as text; `tests/torch/test_snippets.py` runs them."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint
from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY
from inspector.target.wish import parse_target
from tests.unit.snippet.rows import SAFE, THIS, checkpoint, tensor

WEIGHT = tensor("._parameters", "w", device="cuda:0")
NET = checkpoint(WEIGHT, root="module", names=("nets.Net", "torch.nn.modules.linear.Linear"))
# Its class is mentioned only: whether it is one cannot be told, so nothing is offered for torch's list.
MENTIONED = checkpoint(
    WEIGHT, root="module", names=("nets.Net", "torch.nn.modules.linear.Linear"), safety=SAFE
)
WITH_OWN_DEVICE = "torch._utils._rebuild_wrapper_subclass"


def module(rows: Checkpoint, style: str = "module", target: object = CPU_ONLY) -> str:
    return render(rows, style=style, target=target, path="net.pt")


def test_module_of_classes_is_allowed_by_name() -> None:
    assert module(NET) == (
        "import nets\nimport torch\n\n"
        "# The file creates objects of classes from nets.\n"
        "# Allow them only if that code is yours, or if you trust it.\n"
        "# This takes torch 2.4 or newer.\n"
        "torch.serialization.add_safe_globals([nets.Net, torch.nn.modules.linear.Linear])\n\n"
        'model = torch.load(\n    "net.pt",\n    map_location="cpu",\n    weights_only=True,\n)\n\n'
        "model.eval()\n"
    )


def test_module() -> None:
    assert module(MENTIONED) == (
        "import importlib\n\n"
        "import torch\n\n"
        "# The file contains no code: these modules must be importable here, as where it was saved.\n"
        'for name in ["nets"]:\n'
        "    importlib.import_module(name)\n\n"
        "# weights_only=False: it calls or sets more than a list can safely allow, such as\n"
        "# nets.Net.\n"
        "# Loading it so can run code that is in it: do so only if you trust its source.\n"
        'model = torch.load(\n    "net.pt",\n    map_location="cpu",\n    weights_only=False,\n)\n\n'
        "model.eval()\n"
    )


def test_module_is_put_on_the_device() -> None:
    text = module(NET, target=THIS)
    assert 'model = torch.load(\n    "net.pt",\n    map_location={"cuda:0": device},\n' in text
    assert text.index("device = ") < text.index("torch.load(")
    nested = checkpoint(WEIGHT, root="module", names=("nets.Net", WITH_OWN_DEVICE))
    assert 'map_location="cpu"' in module(nested, target=THIS)
    assert "\nmodel.to(device)\n" in module(nested, target=THIS)


def test_module_of_torch_alone_needs_no_other() -> None:
    text = module(checkpoint(WEIGHT, root="module", names=("torch.nn.modules.linear.Linear",)))
    assert "import_module" not in text
    assert "weights_only=True" in text
    functions = module(checkpoint(WEIGHT, root="module", names=("torch.nn.functional.gelu",), safety=SAFE))
    assert "import_module" not in functions
    assert "weights_only=False" in functions


def test_classes_of_the_script_itself_are_named_in_words() -> None:
    text = module(checkpoint(WEIGHT, root="module", names=("__main__.Net",)))
    said = "# The file needs classes from the script that saved it: define them before this line.\n"
    assert text.index(said) < text.index("add_safe_globals([__main__.Net])")
    assert "import_module" not in text


def test_no_list_of_modules_is_endless() -> None:
    text = module(
        checkpoint(WEIGHT, root="module", names=tuple(f"m{index}.Net" for index in range(1000)), safety=SAFE)
    )
    assert text.count('    "m') == 16


def test_dangerous_module_is_not_loaded() -> None:
    text = module(checkpoint(WEIGHT, root="module", names=("nets.Net", "os.system")))
    assert "# torch rightly refuses this file" in text
    assert "weights_only=True" in text


def test_module_beside_a_state_dict() -> None:
    rows = checkpoint(tensor("a", "._parameters", "w"), tensor("b", "v"), names=("nets.Net",))
    assert module(rows).endswith(
        "# The model without a class in the file is yours, built as it was when it was saved.\n"
        'a = checkpoint["a"]\nb.load_state_dict(checkpoint["b"])\n\na.eval()\n'
    )
    assert module(rows, "module-weights").endswith(
        'a.load_state_dict(checkpoint["a"].state_dict())\nb.load_state_dict(checkpoint["b"])\n'
    )


def test_weights_of_a_module() -> None:
    assert module(NET, "module-weights", parse_target("cuda")) == (
        "import nets\nimport torch\n\n"
        "# The file creates objects of classes from nets.\n"
        "# Allow them only if that code is yours, or if you trust it.\n"
        "# This takes torch 2.4 or newer.\n"
        "torch.serialization.add_safe_globals([nets.Net, torch.nn.modules.linear.Linear])\n\n"
        'saved = torch.load(\n    "net.pt",\n    map_location="cpu",\n    weights_only=True,\n)\n\n'
        "# The model is yours, built by your current code: only its weights come from the file.\n"
        'model.to("cuda:0")\nmodel.load_state_dict(saved.state_dict())\n'
    )
    assert "device = " in module(NET, "module-weights", THIS)
    on_cpu = checkpoint(tensor("._parameters", "w"), root="module", names=("nets.Net",))
    assert "map_location" not in module(on_cpu, "module-weights")
