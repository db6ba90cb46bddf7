"""What code leaves to its reader, and what it does whatever its texts and variables are."""

from __future__ import annotations

import ast
import builtins
import re


def free_names(code: str) -> list[str]:
    """List the names that code uses before it has bound them."""
    bound, free = set(dir(builtins)), []
    for statement in ast.parse(code).body:
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        inner = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        local = inner if isinstance(statement, (ast.For, ast.With, ast.If, ast.FunctionDef)) else set()
        for part in ast.walk(statement):
            if isinstance(part, ast.comprehension):
                local = local | {node.id for node in ast.walk(part.target) if isinstance(node, ast.Name)}
            if isinstance(part, ast.arg):
                local = local | {part.arg}
        used = [node.id for node in names if isinstance(node.ctx, ast.Load)]
        free += [name for name in used if name not in bound | local and name not in free]
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            inner = {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
        if isinstance(statement, ast.FunctionDef):
            inner = {statement.name}
        bound |= inner
    return free


def shape_of(code: str) -> str:
    """Return what code does, whatever its literals say and its variables are called."""
    tree = ast.parse(code)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    kept = {alias.asname or alias.name for node in imports for alias in node.names}
    known: dict[str, str] = {}
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]  # these are always the same
    own = {id(node) for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
        if id(node) in own:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
        if isinstance(node, ast.Name) and node.id not in kept and not hasattr(builtins, node.id):
            assert node.id.isascii()
            node.id = known.setdefault(node.id, f"v{len(known)}")
    return ast.dump(tree)


def comments_of(code: str) -> list[str]:
    """Return the comments but for those that name variables, which are plain."""
    comments = [line.strip() for line in code.splitlines() if line.lstrip().startswith("#")]
    names = "|".join(free_names(code)) or "-"
    about = re.compile(rf"#(   | ({names})(,|$|[.]parameters))|# It was split over devices: where ")
    named = [comment for comment in comments if about.match(comment)]
    assert all(re.fullmatch(r"#[\w .,:()]*", comment, re.ASCII) for comment in named)
    return [comment for comment in comments if comment not in named]
