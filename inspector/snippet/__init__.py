"""Code that loads a checkpoint on a machine: one module a style, every snippet is executed in the tests.

A snippet is text that people run. So whatever comes from a file or a path enters it as an `ascii()` literal,
names only if they are plain dotted identifiers, and no comment carries any of it.
"""
