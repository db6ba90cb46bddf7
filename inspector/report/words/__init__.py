"""Every text that the window and the command line both show, worded once.

A text is a constant, an entry of a table, or a function that returns a sentence. A table has one entry for
each member of an enumeration (or of a `Literal`), and a test compares the two, so that a new member without
its words is found. What varies stands in the sentence as `{name}`, or as the function's parameter. Text that
comes out of a file is escaped by the caller, and no code ever compares a sentence with another.

What layers below `report` have to word themselves is written by the same pattern: facts about a file in
`model/words.py`, findings in the tables of `diagnose`, errors where they are raised. `python -m tests.texts`
lists them all.
"""
