"""Code for files that something other than torch loads, told by what is in them."""
