#!/usr/bin/env bash
# Builds what people install, into dist/. usage: package.sh wheel|bundle|deb|rpm
#
# wheel   the wheel and the source archive, checked as PyPI would
# bundle  the program as a folder that needs no Python, and as a tar.xz
# deb     a package of Debian and Ubuntu, made of the bundle
# rpm     a package of Fedora, openSUSE and others, made of the same tree; needs rpmbuild
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
    build twine check-wheel-contents pyinstaller argparse-manpage \
    "cyclonedx-python-lib[json-validation]" hatchling --editable '.[gui]'
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
  "$PYTHON" packaging/linux/sbom.py "$BUNDLE"
  mkdir -p dist
  tar -C build/bundle -cJf "dist/$NAME-$VERSION-linux-$(uname -m).tar.xz" $NAME
  say "$(du -sh "$BUNDLE" | cut -f1), packed $(du -h "dist/$NAME-$VERSION-linux-$(uname -m).tar.xz" | cut -f1)"
}

# What a package of a distribution holds below /usr, whatever its kind.
tree() { # tree USR
  [ -x "$BUNDLE/$NAME" ] || bundle
  local usr=$1
  rm -rf "$usr"
  mkdir -p "$usr"/{bin,lib} "$usr"/share/{applications,mime/packages,metainfo,thumbnailers} \
    "$usr/share/icons/hicolor/scalable/apps"
  cp -a "$BUNDLE" "$usr/lib/$NAME"
  ln -s "../lib/$NAME/$NAME" "$usr/bin/$NAME"
  ln -s $NAME "$usr/bin/ckpti"
  PYTHONPATH=. "$PYTHON" packaging/linux/papers.py "$usr"
  cp resources/desktop/$NAME.desktop "$usr/share/applications/"
  cp resources/desktop/$NAME.thumbnailer "$usr/share/thumbnailers/"
  cp resources/desktop/$NAME.xml "$usr/share/mime/packages/"
  cp resources/desktop/$NAME.metainfo.xml "$usr/share/metainfo/"
  cp resources/icons/app.svg "$usr/share/icons/hicolor/scalable/apps/$NAME.svg"
  icons "$usr/share/icons/hicolor"
  find "$usr" -type d -exec chmod 755 {} +
  find "$usr" -type f -exec chmod u+rw,go+r,go-w {} +
  find "$usr/lib" -name '*.so*' -type f -exec chmod 644 {} +
}

deb() {
  local root=build/deb architecture
  architecture=$(dpkg --print-architecture)
  rm -rf "$root"
  tree "$root/usr"
  mkdir -p "$root/DEBIAN" "$root/usr/share/doc/$NAME" "$root/usr/share/lintian/overrides"
  overrides >"$root/usr/share/lintian/overrides/$NAME"
  copyright >"$root/usr/share/doc/$NAME/copyright"
  changelog | gzip -9n >"$root/usr/share/doc/$NAME/changelog.gz"
  control "$root" "$architecture" >"$root/DEBIAN/control"
  chmod -R u+rwX,go+rX,go-w "$root/usr/share"
  (cd "$root" && find usr -type f -exec md5sum {} + >DEBIAN/md5sums)
  mkdir -p dist
  dpkg-deb --root-owner-group --build -Zxz "$root" "dist/${NAME}_${VERSION}_$architecture.deb" >/dev/null
  say "dist/${NAME}_${VERSION}_$architecture.deb: $(du -h "dist/${NAME}_${VERSION}_$architecture.deb" | cut -f1)"
}

# rpmbuild is given a finished tree: it neither strips nor compiles what the bundle holds.
rpm() {
  local top=$PWD/build/rpm libraries
  libraries=$(sed -n 's/^lib[^ ]* \(.*\)/\1()(64bit)/p' resources/desktop/debian-libraries.txt | paste -sd, | sed 's/,/, /g')
  rm -rf "$top"
  tree "$top/tree/usr"
  mkdir -p "$top/tree/usr/share/zsh/site-functions" dist
  mv "$top/tree/usr/share/zsh/vendor-completions/"* "$top/tree/usr/share/zsh/site-functions/"
  rmdir "$top/tree/usr/share/zsh/vendor-completions"
  rpmbuild -bb --quiet --define "_binary_payload w6.xzdio" --define "_topdir $top" --define "_rpmdir $PWD/dist" \
    --define "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" --define "version_of_program $VERSION" \
    --define "tree $top/tree" --define "libraries $libraries" packaging/linux/$NAME.rpm.spec
  say "$(ls dist/*.rpm): $(du -h dist/*.rpm | cut -f1)"
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

# Why each is as it is: a bundle brings the libraries that it was tested with, as PyPI has them; the probe runs on other
# machines, with the Python there; launch.sh is a template that `desktop install` fills; and there is no address to name.
overrides() {
  local tag
  for tag in custom-library-search-path embedded-library library-not-linked-against-libc unstripped-binary-or-object \
    shared-library-lacks-prerequisites hardening-no-pie python3-script-but-no-python3-dep script-not-executable \
    bogus-mail-host bogus-mail-host-in-debian-changelog; do
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
Copyright: 2026 the developers of Checkpoint Inspector
License: Apache-2.0
 On Debian systems, the text of the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0.

Files: usr/lib/$NAME/_internal/*
Copyright: 2001-2026 the authors of Python, Qt, Qt for Python, NumPy, pyqtgraph and the libraries named below
License: other
 $(sed 's/^$/./' "$BUNDLE/NOTICES.txt" | sed '2,$s/^/ /')
END
}

changelog() {
  printf '%s (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md of the source.\n\n -- Checkpoint Inspector developers <%s>  %s\n' \
    "$NAME" "$VERSION" checkpoint-inspector@localhost.localdomain "$(date -Ru --date="@$(git log -1 --format=%ct)")"
}

case "${1:-}" in
  wheel | bundle | deb | rpm) "$1" ;;
  *) say "usage: package.sh wheel|bundle|deb|rpm"; exit 2 ;;
esac
