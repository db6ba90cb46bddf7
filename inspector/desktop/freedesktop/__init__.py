"""Desktops that follow the specifications of freedesktop.org."""
