"""Which modules of a crate use which other modules, according to their `use` lines and paths."""

import re

USE = re.compile(r"\buse ((?:crate|super|self)::[^;]+);")
PATH = re.compile(r"\bcrate::\w+(?:::\w+)*")
EXPORT = re.compile(r"pub(?:\(crate\))? use ([^;]+);")
UNIT_TESTS = re.compile(r"#\[cfg\(test\)\]\s*mod tests")


def sources(crate):
    """{path of a module: its text without comments and unit tests}."""
    found = {}
    for file in (crate / "src").rglob("*.rs"):
        parts = file.relative_to(crate / "src").with_suffix("").parts
        if "tests" in parts or file.stem.endswith("_tests"):
            continue
        text = UNIT_TESTS.split(file.read_text())[0]
        found[() if parts in (("lib",), ("main",)) else parts] = re.sub(r"//.*", "", text)
    return found


def split(items):
    """Splits text at the commas outside braces."""
    depth, parts = 0, [""]
    for letter in items:
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part.strip()]


def paths(tree, before=()):
    """The paths of a `use` tree: `a::{b, c::d}` has two."""
    tree = tree.strip()
    if tree.startswith("{"):
        return [path for item in split(tree[1:-1]) for path in paths(item, before)]
    head, more, rest = tree.partition("::")
    if more:
        return paths(rest, (*before, head.strip()))
    return [(*before, tree.split()[0])]


def used(crate):
    """{module: the modules that it uses}. A module does not count as used by the modules that it contains."""
    modules = sources(crate)
    exported = {}
    for path in (path for tree in EXPORT.findall(modules.get((), "")) for path in paths(tree)):
        exported[path[-1]] = tuple(part for part in path[:-1] if part not in ("crate", "self"))
    edges = {}
    for module, text in modules.items():
        found = set()
        for path in (path for tree in [*USE.findall(text), *PATH.findall(text)] for path in paths(tree)):
            base = list(module) if path[0] in ("self", "super") else []
            while path and path[0] in ("self", "super", "crate"):
                base = base[:-1] if path[0] == "super" else base
                path = path[1:]
            full = (*base, *path)
            if not base and path and path[:1] not in modules:
                full = exported.get(path[0], full)
            known = [full[:n] for n in range(len(full), 0, -1) if full[:n] in modules]
            found |= {known[0]} if known else set()
        if module:
            edges[module] = {other for other in found if other != module}
    return edges


def circles(edges):
    """The sets of modules that use each other in a circle."""

    def reached(start):
        seen, left = set(), [start]
        while left:
            for other in edges.get(left.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    left.append(other)
        return seen

    reach = {module: reached(module) for module in edges}
    found = {frozenset(other for other in reach[module] if module in reach.get(other, ())) for module in edges}
    return [sorted("::".join(module) for module in circle) for circle in found if len(circle) > 1]
