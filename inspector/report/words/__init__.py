"""Every text that the window and the command line both show, worded once.

A text is a constant, an entry of a table, or a function that returns a sentence. A table has one entry for
each member of an enumeration (or of a `Literal`), and a test compares the two, so that a new member without
its words is found. What varies stands in the sentence as `{name}`, or as the function's parameter. Text that
comes out of a file is escaped by the caller, and no code ever compares a sentence with another.

What layers below `report` word themselves follows the same pattern, a table beside its enumeration: notes on
a file (`containers/notes.py`), oddities of a pickle (`pickles/oddities.py`), what stops torch
(`model/obstacles.py`), reasons of a verdict (`safety`); findings stand in the tables of `diagnose`, errors
where they are raised. `python -m tests.texts` lists them.
"""
