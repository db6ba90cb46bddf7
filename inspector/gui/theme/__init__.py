"""Colors, fonts and icons of both themes."""
