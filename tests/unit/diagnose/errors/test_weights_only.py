"""Messages of weights_only=True: what this file asks for, and whether it may be allowed."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Safety
from inspector.model.findings import Fix
from tests.corpus import CORPUS
from tests.sweep import table
from tests.unit.diagnose.cases import PLAIN, samples
from tests.unit.diagnose.explaining import asking, explained

REFUSED = "WeightsUnpickler error: Unsupported global: GLOBAL {} was not an allowed global by default."


def test_name_of_this_file_is_judged_and_the_others_named() -> None:
    found = explained(REFUSED.format("mine.Net"), asking("mine.Net", "mine.Head"), id_="unsupported-global")
    assert (found.fits, found.finding, found.fix) == ("yes", "needs-allow-list", Fix(style="plain"))
    assert "allow it if mine is your own code, or code you trust" in found.here
    assert "Next it would ask for mine.Head: allow them together." in found.here
    alone = explained(REFUSED.format("mine.Net"), asking("mine.Net"), id_="unsupported-global")
    assert "Next" not in alone.here


def test_a_class_that_only_holds_data_needs_no_trust() -> None:
    text = REFUSED.format("argparse.Namespace")
    found = explained(text, asking("argparse.Namespace"), id_="unsupported-global")
    assert "a class that only holds data, so it can be allowed" in found.here


def test_a_function_is_offered_to_nobody() -> None:
    called = Safety(
        opcodes=("STOP",), protocol=2, oddities=(), unread=(), called=("functools.partial", "mine.make")
    )
    made = asking("functools.partial", "mine.make", safety=called)
    for name in ("functools.partial", "mine.make"):
        found = explained(REFUSED.format(name), made, id_="unsupported-global")
        assert (found.fits, found.finding) == ("yes", "runs-code")
        assert "It should not be allowed" in found.here
        assert "Do not add names to torch's list" in found.advice
        assert "safe_globals" not in f"{found.here} {found.advice} {found.cause}"


def test_names_that_a_newer_torch_allows() -> None:
    text = REFUSED.format("torch.nn.parameter.Parameter")
    found = explained(text, asking("torch.nn.parameter.Parameter"), id_="unsupported-global")
    assert "Recent versions of torch know it" in found.here


def test_older_wordings_name_it_too() -> None:
    text = "GLOBAL mine.Net was not an allowed global by default"
    assert explained(text, asking("mine.Net"), id_="unsupported-global").fits == "yes"
    text = "WeightsUnpickler error: Unsupported class mine.Net"
    assert explained(text, asking("mine.Net"), id_="unsupported-global").fits == "yes"


def test_name_of_another_file() -> None:
    found = explained(REFUSED.format("mine.Net"), asking("other.Net"), id_="unsupported-global")
    assert (found.fits, found.fix) == ("no", None)
    assert "It asks for other.Net." in found.here
    assert "It asks for" not in explained(REFUSED.format("a.B"), asking(), id_="unsupported-global").here


def test_dangerous_name_is_not_to_be_allowed() -> None:
    text = "Trying to load unsupported GLOBAL posix.system whose module posix is blocked."
    found = explained(text, asking("posix.system"), id_="blocked-global")
    assert (found.fits, found.finding, found.fix) == ("yes", "dangerous-global", None)
    assert found.advice.startswith("Do not load this file")


def test_a_harmless_name_of_a_dangerous_file_is_not_to_be_allowed_either() -> None:
    found = explained(REFUSED.format("mine.Net"), asking("mine.Net", "os.system"), id_="unsupported-global")
    assert (found.finding, found.fix) == ("dangerous-global", None)
    assert found.advice.startswith("Do not load this file")
    assert "allow it" not in found.here


def test_another_opcode_in_a_dangerous_file() -> None:
    old = Safety(opcodes=("FRAME",), protocol=4, oddities=(), unread=())
    found = explained("Unsupported operand 149", asking("os.system", safety=old), id_="unsupported-operand")
    assert found.advice.startswith("Do not load this file")


def test_name_in_a_file_that_needs_more_than_names() -> None:
    made = asking("mine.Net", safety=Safety(opcodes=("FRAME",), protocol=4, oddities=(), unread=()))
    found = explained(REFUSED.format("mine.Net"), made, id_="unsupported-global")
    assert found.finding == "runs-code"
    assert "does not know the opcode FRAME" in found.here


@table(
    ("text", "id_"),
    [
        ("WeightsUnpickler error: Unsupported operand 149", "unsupported-operand"),
        ("Can only append to lists, but got <class 'set'>", "unsupported-call"),
        ("Weights only load failed.", "weights-only"),
    ],
)
def test_other_refusals(text: str, id_: str) -> None:
    worst = explained(text, asking("os.system", "mine.Net"), id_=id_)
    assert (worst.finding, worst.fix) == ("dangerous-global", None)
    assert worst.advice.startswith("Do not load this file")
    old = asking(safety=Safety(opcodes=("FRAME",), protocol=4, oddities=(), unread=()))
    found = explained(text, old, id_=id_)
    assert (found.fits, found.finding) == ("yes", "runs-code")
    assert ("pickled with protocol 4" in found.here) == (id_ == "unsupported-operand")
    two = asking("mine.Net")
    assert explained(text, two, id_=id_).finding == "needs-allow-list"
    fine = explained(text, open_checkpoint(str(CORPUS / "zip" / "state_dict.pt")), id_=id_)
    assert (fine.fits, fine.fix) == ("no", None)


def test_what_is_no_pickle_at_all() -> None:
    text = "Weights only load failed. WeightsUnpickler error: Unsupported operand {}"
    found = explained(text.format(118), PLAIN, id_="not-a-pickle")
    assert (found.fits, "Git LFS pointer" in found.cause) == ("no", True)
    assert "does not help" in found.advice
    assert explained(text.format(10), PLAIN, id_="not-a-pickle").cause.startswith("What torch began to read")
    assert explained(text.format(149), PLAIN, id_="unsupported-operand").id
    cut = samples()["truncated"].has[0]
    assert explained("WeightsUnpickler error: pop from empty list", cut, id_="not-a-pickle").fits == "yes"


def test_what_was_read_instead_of_a_pickle() -> None:
    text = "_pickle.UnpicklingError: Weights only load failed. WeightsUnpickler error: {}"
    damaged = explain_error(text.format("pop from empty list"), None)
    assert (damaged.id, damaged.fits) == ("not-a-pickle", "unknown")
    plain = explain_error(text.format("pop from empty list"), samples()["truncated"].has[0])
    assert (plain.fits, plain.finding) == ("yes", "truncated")
    assert explain_error(text.format("pop from empty list"), PLAIN).fits == "no"


def test_a_name_that_older_torch_refuses_acquits_nobody() -> None:
    """`collections.OrderedDict` was on every list; device came later."""
    text = "WeightsUnpickler error: Unsupported operand 149"
    assert explained(text, asking("collections.OrderedDict"), id_="unsupported-operand").fits == "no"
    found = explained(text, asking("torch.device"), id_="unsupported-operand")
    assert (found.fits, "older ones refuse" in found.here) == ("unknown", True)
