#!/usr/bin/env bash
# Sets up what `make run` or `make test` needs: a virtual environment in .venv, and the system's libraries.
# Safe to run again. usage: setup.sh run|test
#
# It asks apt for what is missing when it may (root, or sudo without a password), else it prints the one line
# that somebody who may has to run. Package indexes are pip's own business: its configuration is respected.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Qt's own libraries come from PyPI; these are what they load. The xcb ones are for a real screen.
QT_PACKAGES=(libglib2.0-0 libegl1 libgl1 libdbus-1-3 libfontconfig1 libxkbcommon0 fonts-dejavu-core
  libxcb-cursor0 libxcb-icccm4 libxcb-keysyms1 libxcb-shape0 libxkbcommon-x11-0)
# A screen without a monitor, a window manager and a file manager to drop from: for tests/end2end.
declare -A TEST_TOOLS=([Xvfb]=xvfb [openbox]=openbox [pcmanfm]=pcmanfm [xdotool]=xdotool [xprop]=x11-utils
  [dbus-launch]=dbus-x11 [import]=imagemagick [update-mime-database]=shared-mime-info
  [desktop-file-validate]=desktop-file-utils)

say() { printf '%s\n' "setup: $*" >&2; }
die() { say "$@"; exit 1; }

may_install() { command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; }

apt_install() { # apt_install WHY PACKAGE...
  local why=$1 become=()
  shift
  if ! may_install; then
    command -v apt-get >/dev/null || die "$why; this system has no apt-get, please install the like of: $*"
    die "$why; please run this line, then make again:" $'\n\n    '"sudo apt-get install -y $*"$'\n'
  fi
  [ "$(id -u)" = 0 ] || become=(sudo -n)
  say "$why; installing $*"
  "${become[@]}" apt-get update -qq || say "apt-get update failed, going on with the lists that are there"
  "${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  local candidate
  for candidate in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
    if new_enough "$candidate"; then command -v "$candidate"; return; fi
  done
  return 1
}

make_venv() {
  if new_enough .venv/bin/python && .venv/bin/python -m pip --version >/dev/null 2>&1; then return; fi
  local python
  if ! python=$(find_python); then
    command -v python3 >/dev/null && die "Python 3.11 or newer is needed, $(python3 --version) was found"
    apt_install "there is no Python" python3 python3-venv
    python=$(find_python) || die "Python 3.11 or newer is needed, $(python3 --version) was found"
  fi
  # Debian ships venv without what it needs to put pip into the new environment.
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    apt_install "$python cannot make virtual environments" \
      "python$("$python" -c 'import sys; print(*sys.version_info[:2], sep=".")')-venv"
  fi
  "$python" -m venv --clear .venv
}

install_project() { # install_project REQUIREMENT
  local pip=(.venv/bin/python -m pip install --disable-pip-version-check --constraint packaging/constraints.txt)
  # Where all of it is installed, no network is needed; hatchling is what builds the project itself.
  "${pip[@]}" --quiet --no-index --no-build-isolation --editable "$1" 2>/dev/null ||
    "${pip[@]}" hatchling --editable "$1"
}

missing_qt_libraries() {
  local qt
  qt=$(.venv/bin/python -c 'import importlib.util as u; print(*u.find_spec("PySide6").submodule_search_locations)')
  ldd "$qt"/Qt/plugins/platforms/lib{qxcb,qoffscreen}.so "$qt"/Qt/lib/libQt6{Widgets,OpenGL,Svg}.so.6 |
    awk '/not found/ {print $1}' | sort -u
}

install_qt_libraries() {
  [ "$(uname)" = Linux ] || return 0
  local missing
  missing=$(missing_qt_libraries)
  [ -z "$missing" ] || apt_install "Qt misses ${missing//$'\n'/ }" "${QT_PACKAGES[@]}"
  missing=$(missing_qt_libraries)
  [ -z "$missing" ] || die "Qt still misses ${missing//$'\n'/ }"
}

install_test_tools() {
  [ "$(uname)" = Linux ] || return 0
  local tool wanted=()
  for tool in "${!TEST_TOOLS[@]}"; do
    command -v "$tool" >/dev/null || wanted+=("${TEST_TOOLS[$tool]}")
  done
  [ ${#wanted[@]} = 0 ] || apt_install "the end-to-end tests need a screen" "${wanted[@]}"
}

case "${1:-}" in
  run) requirement=. ;;
  test) requirement='.[dev]' ;;
  *) die "usage: setup.sh run|test" ;;
esac
make_venv
install_project "$requirement"
install_qt_libraries
[ "$1" = run ] || install_test_tools
