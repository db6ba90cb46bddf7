"""How answers look on a terminal: laid out for its width, in its colors, paged where they are longer."""
