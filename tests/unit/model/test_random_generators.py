"""NumPy random generators: with which arguments their makers are harmless, and what type they make."""

from __future__ import annotations

from inspector.model.arguments import RANDOM_TYPES, may_take, random_type
from inspector.pickles.values import Call, Value
from inspector.safety.names import known_classes
from inspector.safety.verdict import judge
from tests.builders.pickles import name, number, op, text, tuple_
from tests.sweep import table
from tests.unit.model.making import built, by_hand, call, pairs, root_of

BITS, SEEDS = (
    "numpy.random._pickle.__bit_generator_ctor",
    ("numpy.random.bit_generator.__pyx_unpickle_SeedSequence"),
)
GENERATOR, STATE = "numpy.random._pickle.__generator_ctor", "numpy.random._pickle.__randomstate_ctor"
PCG64, SEED = name("numpy.random._pcg64.PCG64"), name("numpy.random.bit_generator.SeedSequence")
HONEST = (
    call(BITS),
    call(BITS, text("Philox")),
    call(BITS, PCG64),
    call(GENERATOR),
    call(GENERATOR, text("PCG64")),
    call(GENERATOR, text("PCG64"), name(BITS)),
    call(STATE, call(BITS, PCG64)),
    call(STATE, PCG64, name(BITS)),
    call(SEEDS, SEED, number(7), op("NONE")),
    call(SEEDS, SEED, number(7), tuple_(number(1))),
)
OTHERS = (
    call(BITS, text("net.Net")),
    call(BITS, name("net.Net")),
    call(BITS, PCG64, PCG64),
    call(GENERATOR, text("PCG64"), name("os.system")),
    call(GENERATOR, text("PCG64"), name(BITS), name(BITS)),
    call(GENERATOR, text("ls")),
    call(STATE, call("net.Net")),
    call(SEEDS),
    call(SEEDS, PCG64, number(7), op("NONE")),
    call(SEEDS, SEED, text("7"), op("NONE")),
    call(SEEDS, SEED, number(7), text("x")),
)


def a_call(made: bytes) -> Call:
    value: Value = root_of(made)
    assert isinstance(value, Call)
    return value


def test_only_what_numpy_hands_over_is_taken() -> None:
    for expected, bodies in ((True, HONEST), (False, OTHERS)):
        for body in bodies:
            made = a_call(body)
            assert may_take(made.func.dotted, made) == expected, body
    made = a_call(name(BITS) + text("PCG64") + op("REDUCE"))  # no tuple
    assert not may_take(BITS, made)


def test_a_misuse_is_never_offered() -> None:
    """Such a call could call whatever else is allowed."""
    for body in OTHERS:
        assert judge(by_hand(body)).to_allow == (), body
    for body in HONEST:
        assert judge(by_hand(body)).verdict == "needs-allow-list", body


@table(
    ("made", "type_"),
    [
        (call(BITS), "numpy.random._mt19937.MT19937"),
        (call(BITS, text("SFC64")), "numpy.random._sfc64.SFC64"),
        (call(BITS, PCG64), "numpy.random._pcg64.PCG64"),
        (call(BITS, name("net.Net")), None),
        (call(BITS, number(1)), None),
        (call(GENERATOR), "numpy.random._generator.Generator"),
        (call(STATE), "numpy.random.mtrand.RandomState"),
        (call(SEEDS), "numpy.random.bit_generator.SeedSequence"),
        (call("net.Net"), None),
        (name(BITS) + number(1) + op("REDUCE"), "numpy.random._mt19937.MT19937"),
        (name(BITS) + 2 * (op("EMPTY_TUPLE") + op("REDUCE")), None),
    ],
)
def test_the_type_of_what_is_made(made: bytes, type_: str | None) -> None:
    assert random_type(a_call(made)) == type_
    assert type_ is None or type_ in RANDOM_TYPES <= known_classes().keys()


def test_the_type_is_asked_for_where_a_state_is_set() -> None:
    made = call(GENERATOR, text("PCG64"))
    assert judge(by_hand(made)).to_allow == (GENERATOR,)
    state = pairs(bit_generator=text("PCG64"))
    assert judge(by_hand(built(made, state))).to_allow == (GENERATOR, "numpy.random._generator.Generator")
