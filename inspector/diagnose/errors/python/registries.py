"""Messages about classes that are looked up by name: in a registry, in a configuration, by Hydra."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import ErrorKind

REGISTRY_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="not-in-registry",
        title="The installed code has no class of the name that the configuration asks for",
        pattern=r"There is no such class as|Error locating target|Unable to locate (?:the )?class|"
        r"Unrecognized configuration class",
        cause="A configuration (or a checkpoint with its settings) names classes, and the package that is "
        "installed does not have this one: it is an older or newer version, the module that registers the "
        "class was never imported, or the name is misspelled.",
        advice="Install the version of the framework that the configuration was written for, or update it. "
        "For a class of your own import its module first (custom_imports in mm* projects).",
    ),
    ErrorKind(
        id="package-versions",
        title="The versions of installed packages do not fit each other",
        pattern=r"is used but incompatible\. Please install|which is incompatible|"
        r"(?:is|are) required for a normal functioning|"
        r"requires? [\w-]{1,40}[<>=!~]=?[\d.]{1,12}[^.]{0,40}but "
        r"(?:found|you have|got)|pip'?s dependency resolver does not",
        cause="A package wants another version of a second one than is installed.",
        advice="Install what the message asks for, both packages in one command, so that pip finds versions "
        "that go together: python -m pip install 'torch==X' 'torchvision==Y'.",
    ),
    ErrorKind(
        id="pip-version",
        title="pip finds no build of that version for this Python and system",
        pattern=r"Could not find a version that satisfies the requirement|No matching distribution found for|"
        r"is not a supported wheel on this platform",
        cause="Each release of torch has wheels for some versions of Python and some systems only: old torch "
        "has none for a new Python, CUDA builds (+cu118) are not on PyPI, and there are none for 32 bits.",
        advice="Use a Python that the release supports (torch 1.x: up to 3.10), or a newer torch; for CUDA "
        "builds add --index-url https://download.pytorch.org/whl/cu121. Wheels for Jetson come from NVIDIA.",
    ),
)
