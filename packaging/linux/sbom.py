"""Says what a bundle is made of: the list of notices, and a software bill of materials (CycloneDX 1.6, JSON).

    python packaging/linux/sbom.py BUNDLE     # writes NOTICES.txt and sbom.cdx.json into it

Three kinds of parts are in a bundle: the distributions of PyPI that the program depends on (read from the
metadata of the environment that builds it), Python, and shared libraries of the system that PyInstaller
copied because those need them (named by the package that they were installed from).
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections import deque
from importlib import metadata
from pathlib import Path

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement

NAME = "checkpoint-inspector"
LIBRARIES = Path("build/libraries.json")
"""Which libraries of the system are in the bundle, and where each came from; the bundle's spec writes it."""
QT = """\
Checkpoint Inspector is licensed under the Apache License 2.0, see LICENSE in _internal. This folder also
holds:

Qt for Python and Qt 6, under the LGPL version 3 (https://www.gnu.org/licenses/lgpl-3.0.html): the shared
libraries below _internal/PySide6 and _internal/shiboken6 can be replaced by others of the same version. Their
source: https://code.qt.io.

"""


def distributions() -> list[metadata.Distribution]:
    """Return what the program depends on, its dependencies' dependencies included, sorted by name."""
    found: dict[str, metadata.Distribution] = {}
    waiting = deque([NAME])
    while waiting:
        one = metadata.distribution(waiting.popleft())
        for text in one.requires or []:
            wanted = Requirement(text)
            name = wanted.name.lower().replace("_", "-")
            if name not in found and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
                found[name] = metadata.distribution(wanted.name)
                waiting.append(wanted.name)
    return [found[name] for name in sorted(found)]


def license_of(one: metadata.Distribution) -> str:
    """Return the license of a distribution as its metadata states it."""
    stated = one.metadata.get("License-Expression") or (one.metadata.get("License") or "").partition("\n")[0]
    classifiers = one.metadata.get_all("Classifier") or []
    named = [line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License ::")]
    return stated or ", ".join(named) or "see its source"


def system_libraries() -> dict[str, tuple[str, list[str]]]:
    """Return the shared libraries that were copied from the system: version and names by Debian's package.

    Those of no package (a Python that was built by hand brings some) stand under "".
    """
    sources: dict[str, str] = json.loads(LIBRARIES.read_text(encoding="utf-8"))
    listed = _ask("/usr/bin/dpkg", "-S", *_spellings(sources))
    owners = {}
    for line in listed.splitlines():
        owner, _, path = line.partition(": ")
        owners[path.removeprefix("/usr")] = owner.partition(":")[0]
    packages: dict[str, tuple[str, list[str]]] = {}
    for name, source in sources.items():
        owner = owners.get(source.removeprefix("/usr"), "")
        packages.setdefault(owner, (_version(owner), []))[1].append(name)
    return dict(sorted(packages.items()))


def _spellings(sources: dict[str, str]) -> list[str]:
    """Return the paths as packages may list them: /lib is a link to /usr/lib today."""
    plain = {path.removeprefix("/usr") for path in sources.values()}
    return sorted(plain | {f"/usr{path}" for path in plain})


def _version(package: str) -> str:
    return _ask("/usr/bin/dpkg-query", "-W", "-f", "${Version}", package) if package else ""


def _ask(*command: str) -> str:
    """Return what a command prints; `dpkg -S` ends with 1 where one of the paths is of no package."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603 - our own words


def bill(version: str) -> str:
    """Return the bill of materials, valid by the schema of CycloneDX."""
    bom = Bom()
    bom.metadata.component = Component(
        type=ComponentType.APPLICATION,
        name=NAME,
        version=version,
        licenses=[LicenseExpression("Apache-2.0")],
        bom_ref=NAME,
    )
    bom.components.add(
        Component(
            type=ComponentType.PLATFORM,
            name="Python",
            version=platform.python_version(),
            licenses=[LicenseExpression("PSF-2.0")],
            purl=PackageURL("generic", name="python", version=platform.python_version()),
        )
    )
    for one in distributions():
        name = one.metadata["Name"]
        bom.components.add(
            Component(
                type=ComponentType.LIBRARY,
                name=name,
                version=one.version,
                licenses=[DisjunctiveLicense(name=license_of(one))],
                purl=PackageURL("pypi", name=re.sub(r"[-_.]+", "-", name).lower(), version=one.version),
            )
        )
    for owner, (owned, files) in system_libraries().items():
        bom.components.update(
            [Component(type=ComponentType.LIBRARY, name=name) for name in files]
            if not owner
            else [
                Component(
                    type=ComponentType.LIBRARY,
                    name=owner,
                    version=owned,
                    description=", ".join(files),
                    purl=PackageURL("deb", "debian", owner, owned),
                )
            ]
        )
    bom.register_dependency(bom.metadata.component, bom.components)
    text = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong is not None:
        sys.exit(f"sbom: {wrong}")
    return text


def notices() -> str:
    """Return what the bundle holds of others, under which license: Qt's LGPL wants that said."""
    lines = [f"{one.metadata['Name']} {one.version}: {license_of(one)}" for one in distributions()]
    lines.append(f"Python {platform.python_version()}: PSF-2.0")
    lines += [
        "",
        "Shared libraries of the system, each under the license in /usr/share/doc of its Debian package:",
    ]
    for owner, (version, files) in system_libraries().items():
        lines.append(
            f"{owner} {version}: {', '.join(files)}" if owner else f"of no package: {', '.join(files)}"
        )
    return QT + "\n".join(lines) + "\n"


def main(bundle: Path) -> None:
    """Write both files."""
    version = metadata.version(NAME)
    (bundle / "NOTICES.txt").write_text(notices(), encoding="utf-8")
    (bundle / "sbom.cdx.json").write_text(bill(version), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
