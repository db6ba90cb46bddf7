#!/usr/bin/env bash
# Sets up what a target of the Makefile needs: a virtual environment in .venv, and the system's libraries.
# Safe to run again. usage: setup.sh run|light|test   (light: all checks that need no torch)
#
# It asks apt for what is missing when it may (root, or sudo without a password), else it prints the one line
# that somebody who may has to run. Package indexes are pip's own business: its configuration is respected. The
# one exception is torch, of which PyPI has only the build for CUDA on Linux: ten times the size.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# A screen without a monitor, a window manager, a file manager to drop from, and shells: for tests/end2end.
declare -A TEST_TOOLS=([Xvfb]=xvfb [openbox]=openbox [pcmanfm]=pcmanfm [xdotool]=xdotool [xprop]=x11-utils
  [dbus-launch]=dbus-x11 [import]=imagemagick [update-mime-database]=shared-mime-info
  [desktop-file-validate]=desktop-file-utils [gio]=libglib2.0-bin [jq]=jq [zsh]=zsh [fish]=fish)

TORCH_INDEX=https://download.pytorch.org/whl/cpu/
# What each downloads, takes on the disk and lasts, with 100 Mbit/s on two cores.
declare -A COSTS=([run]="100 MB (0.4 GB on the disk, 1 minute)" [light]="150 MB (0.6 GB on the disk, 1 minute)"
  [test]="350 MB (1.5 GB on the disk, 3 minutes)")

say() { printf '%s\n' "setup: $*" >&2; }
die() { say "$@"; exit 1; }

may_install() { command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; }

apt_install() { # apt_install PACKAGE...
  local become=()
  if ! may_install; then
    command -v apt-get >/dev/null || die "this system has no apt-get, please install the like of: $*"
    mapfile -t -O $# set < <(missing_libraries; missing_fonts test; missing_tools)
    mapfile -t set < <(printf '%s\n' "$@" "${set[@]}" | sort -u)
    die "please run this line, which has what make run and make test need, then make again:" \
      $'\n\n    '"sudo apt-get update && sudo apt-get install -y ${set[*]}"$'\n'
  fi
  [ "$(id -u)" = 0 ] || become=(sudo -n)
  say "installing $*"
  "${become[@]}" apt-get update -qq || say "apt-get update failed, going on with the lists that are there"
  "${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  local candidate
  for candidate in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
    if new_enough "$candidate"; then command -v "$candidate"; return; fi
  done
  return 1
}

# What is missing is asked for at once, and first: nobody wants to come back for the second half.
install_packages() { # install_packages run|light|test
  local wanted=() python
  command -v make >/dev/null || wanted+=(make)
  if python=$(find_python); then
    # Debian ships venv without what it needs to put pip into the new environment.
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
      wanted+=("python$("$python" -c 'import sys; print(*sys.version_info[:2], sep=".")')-venv")
  elif command -v python3 >/dev/null; then
    die "Python 3.11 or newer is needed, $(python3 --version) was found; PYTHON=... names another"
  else
    wanted+=(python3 python3-venv)
  fi
  if [ "$(uname)" = Linux ]; then
    mapfile -t -O "${#wanted[@]}" wanted < <(missing_libraries; missing_fonts "$1")
    [ "$1" = run ] || mapfile -t -O "${#wanted[@]}" wanted < <(missing_tools)
  fi
  [ ${#wanted[@]} = 0 ] || apt_install "${wanted[@]}"
}

missing_libraries() {
  local known package library
  known=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null) || return 0
  while read -r package library; do
    [ "$package" = '#' ] || grep -qF "$library " <<<"$known" || echo "$package"
  done <resources/desktop/debian-libraries.txt
}

# Any font shows the window. The tests count pixels, and mean the one that Debian's desktops have.
missing_fonts() { # missing_fonts run|light|test
  local name='*.[to]t[fc]'
  [ "$1" = run ] || name=DejaVuSans.ttf
  [ -n "$(find /usr/share/fonts /usr/local/share/fonts ~/.fonts ~/.local/share/fonts -name "$name" -print -quit \
    2>/dev/null)" ] || echo fonts-dejavu-core
}

missing_tools() {
  local tool
  for tool in "${!TEST_TOOLS[@]}"; do
    command -v "$tool" >/dev/null || echo "${TEST_TOOLS[$tool]}"
  done
}

make_venv() {
  if new_enough .venv/bin/python && .venv/bin/python -m pip --version >/dev/null 2>&1; then return; fi
  local python
  python=$(find_python) || die "Python 3.11 or newer is needed"
  "$python" -m venv --clear .venv
}

install_project() { # install_project run|light|test
  local pip=(.venv/bin/python -m pip install --disable-pip-version-check --constraint packaging/constraints.txt)
  local -A extras=([run]='[gui]' [light]='[docs,light]' [test]='[dev]')
  local project=".${extras[$1]}"
  # Where all of it is installed, no network is needed; hatchling is what builds the project itself.
  "${pip[@]}" --quiet --no-index --no-build-isolation --editable "$project" 2>/dev/null && return
  mkdir -p build
  say "make $1 downloads ${COSTS[$1]}, once"
  [ "$1" != test ] || small_torch "${pip[@]}" || say "torch comes from where pip looks: 2.8 GB more if that is its build for CUDA"
  # Of what pip says, only what takes long: the rest is in the log, and shown where it fails.
  "${pip[@]}" --progress-bar off hatchling --editable "$project" 2>&1 | tee build/setup.log |
    awk '/Downloading .*MB/ {sub(/^ */, ""); print "setup: " $0; fflush()}' >&2 ||
    { tail -n 20 build/setup.log >&2; die "pip failed; all that it said is in build/setup.log"; }
}

# On Linux, PyPI has torch only for CUDA: ten times the size. Its own index has it for the CPU.
small_torch() { # small_torch PIP...
  [ "$(uname)" = Linux ] || return 0
  .venv/bin/python -c 'import torch' 2>/dev/null && return
  .venv/bin/python -c 'import sys, urllib.request as r; r.urlopen(sys.argv[1], timeout=5)' "$TORCH_INDEX" 2>/dev/null &&
    "$@" --quiet --no-deps --index-url "$TORCH_INDEX" torch
}

# Whether Qt finds all that it loads, as it says itself.
check_qt() {
  [ "$(uname)" = Linux ] || return 0
  local qt missing
  qt=$(.venv/bin/python -c 'import importlib.util as u; print(*u.find_spec("PySide6").submodule_search_locations)')
  missing=$(ldd "$qt"/Qt/plugins/platforms/lib{qxcb,qoffscreen}.so "$qt"/Qt/lib/libQt6{Widgets,OpenGL,Svg}.so.6 |
    awk '/not found/ {print $1}' | sort -u)
  [ -z "$missing" ] || die "Qt misses ${missing//$'\n'/ }"
}

case "${1:-}" in run | light | test) ;; *) die "usage: setup.sh run|light|test" ;; esac
install_packages "$1"
make_venv
install_project "$1"
check_qt
