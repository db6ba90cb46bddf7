#!/bin/sh
# Starts Checkpoint Inspector for the desktop: menus and file managers call this file, which knows what to do
# when the program is no longer where it was. `checkpoint-inspector desktop install` wrote it for this user, and
# `checkpoint-inspector desktop remove` removes it.

program=@PROGRAM@
run() { @COMMAND@ "$@"; }

run "$@"
code=$?
[ "$code" = 0 ] && exit 0
# A program that still answers has said itself what went wrong.
run --version >/dev/null 2>&1 && exit "$code"

# Another installation of this user will do. A relative path would mean the folder of the file that is opened.
for other in "$(command -v checkpoint-inspector)" "$HOME/.local/bin/checkpoint-inspector"; do
  case $other in /*) ;; *) continue ;; esac
  [ "$other" != "$program" ] && "$other" --version >/dev/null 2>&1 && exec "$other" "$@"
done

title='Checkpoint Inspector does not start'
text="It no longer runs from where it was registered:

$program

If you moved or reinstalled it, run this once from where it is now:

checkpoint-inspector desktop install"
printf '%s\n%s\n' "$title" "$text" >&2

has() { command -v "$1" >/dev/null 2>&1; }
if has zenity; then zenity --error --no-markup --title "$title" --text "$text"
elif has kdialog; then kdialog --title "$title" --error "$text"
elif has yad; then yad --no-markup --title "$title" --text "$text" --button OK
elif has xmessage; then xmessage -center -title "$title" "$text"
elif has xdg-open; then
  # No program for dialogs: the text editor shows it.
  printf '%s\n\n%s\n' "$title" "$text" >"${0%/*}/moved.txt" && xdg-open "${0%/*}/moved.txt"
fi
exit 127
