"""Write the table of formats."""

from tests.formats.page import PAGE, page

PAGE.write_text(page(), encoding="utf-8", newline="\n")
