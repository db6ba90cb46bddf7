#!/usr/bin/env bash
# Packs the application bundle of macOS into a disk image. usage: make_dmg.sh OUT.dmg
#
# To be run on macOS, from a Python that has the program and PyInstaller:
#
#   python packaging/make_icons.py build/checkpoint-inspector.icns
#   python -m PyInstaller --noconfirm --distpath build/bundle --workpath build/pyinstaller \
#     packaging/bundle/checkpoint-inspector.spec
#   packaging/macos/make_dmg.sh dist/checkpoint-inspector-1.0.0-macos.dmg
#
# Untested on real hardware. Without a certificate of a developer (SIGN_AS) the signature is one that only says
# that nothing was changed, and Finder asks before it opens what was downloaded.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

APP="build/bundle/Checkpoint Inspector.app"
STAGE=build/dmg

die() { printf '%s\n' "make_dmg: $*" >&2; exit 1; }

[ $# = 1 ] || die "usage: make_dmg.sh OUT.dmg"
[ -f "$APP/Contents/Info.plist" ] || die "there is no $APP: run PyInstaller first"
plutil -lint "$APP/Contents/Info.plist" >/dev/null || die "the property list of $APP is wrong"
codesign --force --deep --options runtime --sign "${SIGN_AS:--}" "$APP"
rm -rf "$STAGE"
mkdir -p "$STAGE" "$(dirname "$1")"
cp -R "$APP" "$STAGE/"
ln -s /Applications "$STAGE/Applications"
hdiutil create -quiet -ov -format UDZO -volname "Checkpoint Inspector" -srcfolder "$STAGE" "$1"
rm -rf "$STAGE"
printf '%s\n' "make_dmg: $1" >&2
