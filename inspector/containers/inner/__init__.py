"""Files of torch within the records of a zip."""
