"""Names of Python 2 under their present name, as unpicklers translate them: the one table of them.

The tables are `IMPORT_MAPPING` and `NAME_MAPPING` of torch's `torch/_utils.py`, cut down from CPython's
`Lib/_compat_pickle.py`. Protocol 2, which torch writes, spells `builtins` the old way to this day.
"""

from __future__ import annotations

MODULES: dict[str, str] = {
    "Queue": "queue",
    "StringIO": "io",
    "UserDict": "collections",
    "UserList": "collections",
    "UserString": "collections",
    "__builtin__": "builtins",
    "_abcoll": "collections.abc",
    "cStringIO": "io",
    "copy_reg": "copyreg",
    "repr": "reprlib",
    "whichdb": "dbm",
}

NAMES: dict[str, str] = {
    "UserDict.IterableUserDict": "collections.UserDict",
    "UserDict.UserDict": "collections.UserDict",
    "UserList.UserList": "collections.UserList",
    "UserString.UserString": "collections.UserString",
    "__builtin__.basestring": "builtins.str",
    "__builtin__.intern": "sys.intern",
    "__builtin__.long": "builtins.int",
    "__builtin__.reduce": "functools.reduce",
    "__builtin__.unichr": "builtins.chr",
    "__builtin__.unicode": "builtins.str",
    "__builtin__.xrange": "builtins.range",
    "exceptions.StandardError": "builtins.Exception",
    "itertools.ifilter": "builtins.filter",
    "itertools.ifilterfalse": "itertools.filterfalse",
    "itertools.imap": "builtins.map",
    "itertools.izip": "builtins.zip",
    "itertools.izip_longest": "itertools.zip_longest",
}


def present_name(name: str) -> str:
    """Return the present name of a dotted one; most are their own."""
    found = NAMES.get(name)
    if found is not None:
        return found
    module, dot, rest = name.partition(".")
    return f"{MODULES.get(module, module)}{dot}{rest}"
