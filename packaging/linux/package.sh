#!/usr/bin/env bash
# Builds what people install, into dist/. usage: package.sh wheel|bundle|deb
#
# wheel   the wheel and the source archive, checked as PyPI would
# bundle  the program as a folder that needs no Python, and as a tar.xz
# deb     a package of Debian and Ubuntu, made of the bundle
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
umask 022

NAME=checkpoint-inspector
ENVIRONMENT=build/packaging
PYTHON=$ENVIRONMENT/bin/python
VERSION=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' inspector/__init__.py)
BUNDLE=build/bundle/$NAME

say() { printf '%s\n' "package: $*" >&2; }

# Without torch and without what only tests need: what is installed here ends in the bundle.
environment() {
  [ -e "$ENVIRONMENT/.ready" ] && return
  python3 -m venv --clear "$ENVIRONMENT"
  "$PYTHON" -m pip install --quiet --disable-pip-version-check --constraint packaging/constraints.txt \
    build twine check-wheel-contents pyinstaller shtab argparse-manpage hatchling --editable .
  touch "$ENVIRONMENT/.ready"
}

wheel() {
  environment
  rm -f dist/*.whl dist/*.tar.gz
  "$PYTHON" -m build --no-isolation --outdir dist . >build/wheel.log || { cat build/wheel.log; exit 1; }
  "$PYTHON" -m twine check --strict dist/*.whl dist/*.tar.gz
  "$PYTHON" -m check_wheel_contents dist/*.whl
}

bundle() {
  environment
  "$PYTHON" -m PyInstaller --noconfirm --log-level ERROR --distpath build/bundle --workpath build/pyinstaller \
    packaging/bundle/$NAME.spec
  notices >"$BUNDLE/NOTICES.txt"
  mkdir -p dist
  tar -C build/bundle -cJf "dist/$NAME-$VERSION-linux-$(uname -m).tar.xz" $NAME
  say "$(du -sh "$BUNDLE" | cut -f1), packed $(du -h "dist/$NAME-$VERSION-linux-$(uname -m).tar.xz" | cut -f1)"
}

# What the bundle holds of others, under which license: Qt's LGPL wants that said.
notices() {
  cat <<'END'
Checkpoint Inspector is licensed under the Apache License 2.0, see LICENSE in _internal. This folder also holds:

Qt for Python and Qt 6, under the LGPL version 3 (https://www.gnu.org/licenses/lgpl-3.0.html): the shared libraries below
_internal/PySide6 and _internal/shiboken6 can be replaced by others of the same version. Their source: https://code.qt.io.

END
  "$PYTHON" - <<'END'
from importlib import metadata

for name in ("PySide6_Essentials", "shiboken6", "numpy", "pyqtgraph", "colorama"):
    found = metadata.metadata(name)
    license = found.get("License-Expression") or (found.get("License") or "").splitlines()[:1] or ["see its source"]
    print(f"{name} {found['Version']}: {license if isinstance(license, str) else license[0]}")
END
  echo "Python $("$PYTHON" -c 'import platform; print(platform.python_version())'): PSF-2.0"
}

deb() {
  [ -x "$BUNDLE/$NAME" ] || bundle
  local root=build/deb architecture
  architecture=$(dpkg --print-architecture)
  rm -rf "$root"
  mkdir -p "$root"/usr/{bin,lib} "$root"/usr/share/{applications,mime/packages,metainfo} "$root/usr/share/doc/$NAME" \
    "$root/usr/share/icons/hicolor/scalable/apps" "$root/usr/share/lintian/overrides" "$root/DEBIAN"
  cp -a "$BUNDLE" "$root/usr/lib/$NAME"
  ln -s "../lib/$NAME/$NAME" "$root/usr/bin/$NAME"
  PYTHONPATH=. "$PYTHON" packaging/linux/papers.py "$root/usr"
  cp resources/desktop/$NAME.desktop "$root/usr/share/applications/"
  cp resources/desktop/$NAME.xml "$root/usr/share/mime/packages/"
  cp resources/desktop/$NAME.metainfo.xml "$root/usr/share/metainfo/"
  cp resources/icons/app.svg "$root/usr/share/icons/hicolor/scalable/apps/$NAME.svg"
  icons "$root/usr/share/icons/hicolor"
  overrides >"$root/usr/share/lintian/overrides/$NAME"
  copyright >"$root/usr/share/doc/$NAME/copyright"
  changelog | gzip -9n >"$root/usr/share/doc/$NAME/changelog.gz"
  control "$root" "$architecture" >"$root/DEBIAN/control"
  find "$root/usr" -type d -exec chmod 755 {} +
  find "$root/usr" -type f -exec chmod u+rw,go+r,go-w {} +
  find "$root/usr/lib" -name '*.so*' -type f -exec chmod 644 {} +
  (cd "$root" && find usr -type f -exec md5sum {} + >DEBIAN/md5sums)
  mkdir -p dist
  dpkg-deb --root-owner-group --build -Zxz "$root" "dist/${NAME}_${VERSION}_$architecture.deb" >/dev/null
  say "dist/${NAME}_${VERSION}_$architecture.deb: $(du -h "dist/${NAME}_${VERSION}_$architecture.deb" | cut -f1)"
}

icons() { # icons FOLDER
  QT_QPA_PLATFORM=offscreen "$PYTHON" - "$1" <<'END'
import sys
from pathlib import Path
from PySide6.QtGui import QGuiApplication, QIcon

app = QGuiApplication([])
icon = QIcon("resources/icons/app.svg")
for size in (16, 24, 32, 48, 64, 128, 256):
    folder = Path(sys.argv[1], f"{size}x{size}", "apps")
    folder.mkdir(parents=True)
    icon.pixmap(size, size).save(str(folder / "checkpoint-inspector.png"))
END
}

# A bundle brings the libraries that it was tested with, as PyPI has them, and the probe that other machines run.
overrides() {
  local tag
  for tag in custom-library-search-path embedded-library library-not-linked-against-libc unstripped-binary-or-object \
    shared-library-lacks-prerequisites hardening-no-pie python3-script-but-no-python3-dep; do
    echo "$NAME: $tag *"
  done
}

control() { # control ROOT ARCHITECTURE
  local libraries
  libraries=$(sed -n 's/^\(lib[^ ]*\) .*/\1/p' resources/desktop/debian-libraries.txt | paste -sd, | sed 's/,/, /g')
  cat <<END
Package: $NAME
Version: $VERSION
Architecture: $2
Maintainer: Checkpoint Inspector developers <checkpoint-inspector@localhost.localdomain>
Installed-Size: $(du -ks "$1/usr" | cut -f1)
Depends: libc6 (>= 2.34), $libraries
Recommends: fonts-dejavu-core, shared-mime-info, desktop-file-utils
Section: science
Priority: optional
Description: see what is inside a PyTorch checkpoint, and make it load
 Opens checkpoints of PyTorch without executing anything in them. Shows modules,
 tensors and optimizer state by the device they were saved on, what torch.load
 would do with them on this machine, and writes copies for other devices.
END
}

copyright() {
  cat <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Checkpoint Inspector

Files: *
Copyright: the developers of Checkpoint Inspector
License: Apache-2.0
 On Debian systems, the text of the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0.

Files: usr/lib/$NAME/_internal/*
Copyright: the authors of Python, Qt, Qt for Python, NumPy and pyqtgraph
License: other
 $(sed 's/^$/./' "$BUNDLE/NOTICES.txt" | sed '2,$s/^/ /')
END
}

changelog() {
  printf '%s (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md of the source.\n\n -- Checkpoint Inspector developers <%s>  %s\n' \
    "$NAME" "$VERSION" checkpoint-inspector@localhost.localdomain "$(date -Ru --date="@$(git log -1 --format=%ct)")"
}

case "${1:-}" in
  wheel | bundle | deb) "$1" ;;
  *) say "usage: package.sh wheel|bundle|deb"; exit 2 ;;
esac
