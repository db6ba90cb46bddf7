"""Pickle streams read as what they are: programs, here interpreted symbolically.

Nothing named in a stream is imported, called, hashed, compared, printed or recursed into. The result is a
tree of inert values (`values`), built by a bounded machine (`machine`, `handlers`), and, where a stream is to
be rewritten, the byte span of every value that changes (`trace`).
"""
