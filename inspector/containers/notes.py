"""What a reader notes about a file besides its contents: each note is a kind and its figures.

Verdicts compare kinds; their sentences are for people, and rewording one changes nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum
from itertools import takewhile
from typing import NamedTuple

from inspector.units import cut_text, escape_text, format_count

_MOST_CHARS, _MOST_NAMED = 80, 3


class NoteKind(Enum):
    """What there is to know about a file: its sentence, or a number where something else tells the same."""

    # Programs, or two runs of one, may read different things from it. Ends of zips come in this order.
    TWO_DIRECTORIES = "Programs look for the directory of this zip in different places."
    FAR_END = "The end of the zip is farther from the end of the file than most programs look."
    TWO_DIRECTORY_SIZES = "The end records of the zip give different sizes for its directory."
    TWO_ENDS = "The zip has two end records: programs differ in which one they believe."
    MORE_RECORDS = (
        "The directory of the zip is not as long as its records: programs differ in how many they read."
    )
    UNWRITTEN_RECORD = (
        "torch takes a record for a folder or for empty, and returns uninitialized memory for it."
    )
    TWO_RECORD_SIZES = "A record has two sizes, and torch reads more or less of it than other programs."
    DAMAGED_RECORD = (
        "A compressed record is damaged or longer than it says; torch reads what it could decompress."
    )
    LARGE_RECORD = "A metadata record is too large to be read here."
    # Its values are the keys of the storages among them.
    SHARED_NAME = "Several records share a name: programs differ in which one they read."
    NO_DIRECTORY = (
        "The zip has no directory, which a complete file ends with: this one is cut off, or lost bytes. "
        "{} found by searching."
    )
    BAD_DIRECTORY = (
        "The zip's directory is damaged: the file was changed or cut off after it was saved. {} found by "
        "searching."
    )
    TWO_FORMATS = "The file is valid in two formats at once: programs differ in which one they read."
    # What is wrong or unusual all the same.
    REFUSED = "torch refuses this file: {}."
    OVERLAP = "Several records share bytes, which no ordinary program writes."
    TORCH_1_4 = "Written by torch 1.4, whose zip files later versions of torch cannot load."
    WRONG_CHECKSUM = "The checksum of data.pkl is wrong: the file was damaged, or changed after it was saved."
    LOST_BYTES = "The bytes of {} of {} are not in the file: {} are lost, {} are left."
    SEARCH_ENDED = "The search took too long and stopped before the end of the file."
    GZIP = "Compressed with {}: torch.load cannot open it by its path; a fixed copy is not compressed."
    TRAILING_BYTES = "{} more bytes follow the checkpoint; torch.load reads the first one only."
    MISSING_PART = "{} missing from the folder: {}."
    SHORT_PART = "{} cut off, or from another save: {}."
    PART_OUTSIDE = "It sends whoever loads it to files outside of its folder: {}. They are not read."
    FILE_TAKEN = "{} is shown, which its loader takes; the same weights may stand in {}."
    VARIANT_TAKEN = 'there is {} alone, which its loader takes with variant="{}" only.'
    EXTRA_PART = "{} not part of it, maybe left from another save: {}."
    FAULTY_CHUNKS = "The chunks of {} do not make up the whole. {}: {}."
    PACKED_PARTS = "Its parts are compressed ({}), which is not read here; only .metadata is."
    UNREAD_VALUES = "{} cannot be read and not judged. {}: {}."
    ALONE = (
        "What one rank wrote of a distributed checkpoint: {} one behind the other. Their names stand in "
        ".metadata, which is not beside this file."
    )
    TAG = "These are the states of {}; {} in this folder."
    UNJOINED = "The weights of the ranks are not joined: {}."
    EMPTIED = (
        "ZeRO 3 leaves parameters empty in the files of the model on purpose: fp32 holds them, joined "
        "from the files of the optimizer."
    )
    UNIVERSAL = (
        "A universal checkpoint: {} in full precision, each in a folder of its own with the slots of its "
        "optimizer."
    )
    LAYERS = "A pipeline: the weights of {} stand in files of their own."
    TENSOR_PARALLEL = (
        "The tensors are divided among {} tensor-parallel ranks, but for those that each has whole. Only "
        "the model knows which, and along which dimension, so they are not joined."
    )
    PIPELINE = "The layers are divided among {} pipeline-parallel ranks, and each counts its own from 0."
    SEVERAL_DEVICES = (
        "The ranks saved their parts on devices of their own, so a joined tensor has none; DeepSpeed "
        "loads them to the CPU."
    )
    STRAY_BYTES = "{} of it belong to none of them: the file is cut off, or holds something else."
    RANKS = "Written by {}, in {}."
    PART_OF = 0
    UNREAD_PART = "it cannot be read: {}."
    NO_STATE_DICT = "{} holds no state dict, and a loader of shards takes nothing else."
    PART_LACKS = "the index looks here for {} that it does not hold: {}."
    PART_HAS_MORE = "it holds {} that the index does not list: {}. Loaders take them all the same."
    PART_HAS_OTHERS = "it holds {} that the index looks for in another file: {}."
    DOUBLE_TENSORS = (
        "{} in more than one file: {}. The copy that the index names is shown; which one counts is up to "
        "the loader."
    )
    INDEXED_TWICE = "The index lists {} twice: {}. The last file counts."
    TOTAL_SIZE = "The index says that all tensors take {}, and they take {}."
    CUT_PICKLE = "The file is cut off in the middle of the pickle: what is behind is lost."
    SEVERAL_PICKLES = "{} pickles stand one behind the other; each pickle.load reads one of them."
    BEHIND_PICKLE = "{} more bytes follow the pickle, which are no pickle; pickle.load ignores them."
    BEHIND_ARRAY = "{} more bytes follow the array; numpy.load reads the array alone."
    UNTYPED = (
        "NumPy has no name for the elements of {}. As JAX writes arrays, with ml_dtypes, they are probably "
        "{}; the file does not say."
    )
    SWAPPED = (
        "Numbers stand with their most significant byte first, which torch.from_numpy refuses; a copy "
        "turns them round."
    )
    OBJECT_ARRAYS = (
        "{}, which are a pickle: numpy.load refuses that without allow_pickle=True, and runs what it "
        "names with it."
    )
    NO_KEYS = 1
    ODD_KEYS = 2
    # What is not shown of it.
    BROKEN_OFF = "At least one pickle in this file is cut off."
    TOO_DEEP = "{} values are nested too deeply to be shown."
    UNLISTED = "{} more values are not listed, as there are too many; all tensors are."
    UNREAD_CODE = (
        "Not all of the code in this file could be looked through: of the rest it is not known what "
        "tensors are for, and which devices are fixed in it."
    )
    NOT_LISTED = "{} are not listed here."
    # What code in the file does.
    RUNS_AT_LOAD = "Code in this file runs as soon as it is loaded: {}."
    FILE_ACCESS = "Code in this file reads or writes files: {}."
    PYTHON_INSIDE = "Python stands in this file: {}."
    MACHINE_CODE = "Machine code stands in this file, which runs when it is loaded: {}."


AMBIGUOUS = frozenset(takewhile(lambda kind: kind is not NoteKind.REFUSED, NoteKind))
"""The kinds after which the object that was read may be another than the one that torch reads."""


class Note(NamedTuple):
    """One note."""

    kind: NoteKind
    values: tuple[str, ...] = ()
    part: str = ""  # the name of the file that it is about, where a checkpoint consists of several

    def within(self, name: str) -> Note:
        """Return the note as one about the part of this name."""
        return self._replace(part=f"{name}: {self.part}" if self.part else name)

    @property
    def sentence(self) -> str:
        """The note for people; empty where something else of the file tells the same."""
        said = str(self.kind.value).format(*self.values) if isinstance(self.kind.value, str) else ""
        return f"{shown(self.part)}: {said}" if said and self.part else said


def sentences(notes: Iterable[Note]) -> list[str]:
    """Return the sentences of notes."""
    return [sentence for note in notes if (sentence := note.sentence)]


def shown(name: str, most: int = _MOST_CHARS) -> str:
    """Return a name that a file brought so that it can be shown."""
    return escape_text(cut_text(name, most))


def listed(names: Collection[str]) -> str:
    """Return the first few names, and how many more there are: `a, b, c and 3 more`."""
    found = list(names)
    more = len(found) - _MOST_NAMED
    return ", ".join(map(shown, found[:_MOST_NAMED])) + (f" and {more:,} more" if more > 0 else "")


def are_files(count: int) -> str:
    """Return the beginning of a sentence about files: `1 file is`, `2 files are`."""
    return f"{format_count(count, 'file')} {'is' if count == 1 else 'are'}"
