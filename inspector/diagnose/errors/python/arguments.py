"""Messages about calls: arguments that a function does not take, and names that a package does not have."""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import ErrorKind, Said, Told
from inspector.diagnose.errors.ties import about_code
from inspector.diagnose.listing import plain

_CODE = about_code("Nothing in this file decides it: it is about the code that calls.")
_OWNERS = {
    **dict.fromkeys(("load_model", "load_file", "save_file", "safe_open"), "safetensors"),
    **dict.fromkeys(("hf_hub_download", "cached_download", "snapshot_download"), "huggingface_hub"),
    **dict.fromkeys(
        ("dispatch_model", "load_checkpoint_and_dispatch", "infer_auto_device_map"), "accelerate"
    ),
    **dict.fromkeys(("get_peft_model", "set_peft_model_state_dict", "load_adapter"), "peft"),
}
_INIT = re.compile(r"__init__\(\) missing \d")
_OF_HPARAMS = re.compile(r"load_from_checkpoint|hparams|\*\*\w{0,20}(?:conf|args|params|opt|kwargs|hp)")


def _call(told: Told) -> Said:
    """Explain that saved settings are passed on, where the line does so."""
    owner = _OWNERS.get(told.groups["function"].rpartition(".")[2].lower(), "")
    if owner:
        return Said(
            cause=f"The function belongs to {owner}, and the installed {owner} is older or newer than the "
            "package that calls it.",
            advice=f"Update {owner}: python -m pip install -U {owner}, or install the versions that the "
            "project asks for.",
        )
    if _INIT.search(told.text) and not told.scene.has_frames:
        return Said(
            title="A class was created without arguments that it needs, or with others",
            cause="Either the code and the package are of different versions, or the arguments come from a "
            "file: load_from_checkpoint of Lightning creates the model from the hyper-parameters that the "
            "checkpoint holds, and these lack some.",
            advice="For Lightning pass what is missing: Model.load_from_checkpoint(path, NAME=...), and call "
            "self.save_hyperparameters() in __init__ before the next run. Otherwise install the versions "
            "that "
            "the project asks for.",
        )
    if _OF_HPARAMS.search(told.scene.code):
        return Said(
            cause="Settings that were saved (hyper-parameters, a configuration) are passed on as arguments, "
            "and the class here does not take them as they are: it is of another version than the one that "
            "saved them.",
            advice="Use the version of the code that saved them, or leave out and add what differs before "
            "the call.",
        )
    return Said()


def _import(told: Told) -> Said:
    """Explain an import that goes in a circle, and files that have a package's name."""
    if "partially initialized" in told.text or "circular import" in told.text:
        return Said(
            title="Modules import each other in a circle, or a file of yours has the name of a package",
            cause="Python was still importing the module when the name was asked for: a file in the folder "
            "of the script is called like the package (torch.py, numpy.py, random.py), or two modules "
            "import each other.",
            advice="Rename the file (and delete its __pycache__), or move one import into the function "
            "that needs it.",
        )
    package = plain((told.groups["module"] or told.groups["owner"]).partition(".")[0])
    return Said(
        cause=f"The name is not in the {package} that is installed: it came in a newer version, or was moved "
        "or removed since. Another package, or the project, was written for that version.",
        advice=f"Install versions that belong together: the requirements of the project, or update both "
        f"(python -m pip install -U {package}). python -m pip show {package} shows what is there.",
    )


ARGUMENT_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="map-location-elsewhere",
        title="map_location was passed to a function that does not take it",
        pattern=r"'map_location' is an invalid keyword argument|"
        r"got an unexpected keyword argument '?map_location|\(\) got multiple values for argument "
        r"'?map_location",
        cause="Only torch.load, torch.jit.load, torch.hub.load_state_dict_from_url and what passes it on "
        "take map_location. pickle.load, joblib.load, np.load, load_file of safetensors and the classes of "
        "models do not.",
        advice="torch.load(path, map_location='cpu') for a file of torch.save; load_file(path, "
        "device='cpu') for safetensors. For a pickle with GPU tensors inside, run the script with "
        "checkpoint-inspector run -- python script.py, which maps them.",
        tie=_CODE,
    ),
    ErrorKind(
        id="load-without-path",
        title="load was called without its arguments",
        pattern=r"\bload\(\) missing \d required positional arguments?: 'f'",
        cause="torch.load wants the path (or an open file) as its first argument, under the name f.",
        advice="torch.load(path, map_location='cpu').",
        tie=_CODE,
    ),
    ErrorKind(
        id="call-arguments",
        title="A function or class was called with arguments that it does not take",
        pattern=r"(?P<function>[\w.<>]{1,80})\(\) (?:got (?:an unexpected keyword|some positional-only|"
        r"multiple values)|missing \d{1,3} required|takes (?:from )?\d{1,3}|takes no (?:keyword )?arguments)",
        cause="The caller and the function do not belong to the same version: the project was written for "
        "another version of the package, or a configuration was saved by another version of the class.",
        advice="Install the versions that the project asks for (requirements.txt), or change the call to "
        "what help(...) of the function shows.",
        tie=_CODE,
        say=_call,
    ),
    ErrorKind(
        id="name-not-in-package",
        title="An installed package does not have a name that the code imports",
        pattern=r"cannot import name '?(?P<name>[\w.]{1,80})'? from (?:partially initialized module )?"
        r"'?(?P<module>[\w.]{1,120})|(?:partially initialized )?module '(?P<owner>[\w.]{1,120})' has no "
        r"attribute '(?P<attribute>\w{1,80})'",
        cause="The installed version of the package is not the one that the code was written for.",
        advice="Install versions that belong together.",
        tie=_CODE,
        say=_import,
    ),
)
