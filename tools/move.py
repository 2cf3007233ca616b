"""Move and merge modules of the package as `tools/map.tsv` says, and rewrite whoever names them.

    python tools/move.py utils display            # the rooms to make; --dry-run only says what would happen

A row of the table is: path today, path tomorrow, subject of the merged file. Sources of one target are put in the order of
their imports. Private names that two of them define are told apart. Imports, dotted names and paths are rewritten in package,
reference, tests, docs, examples, benchmarks and settings. No statement is changed otherwise.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAP = Path(__file__).with_name("map.tsv")
TEXTS = (".md", ".toml", ".rst", ".cfg", ".yml", ".sh", ".txt", ".importlinter", ".pyi", "run")
UNTOUCHED = ("tools/", "CHANGELOG.md")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def tracked() -> list[str]:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in names.stdout.split("\n") if name and not name.startswith(UNTOUCHED)]


def dotted(path: str) -> str:
    """Return the module of a file of the package, or "" for another file."""
    if not path.endswith(".py") or not path.startswith(("mtldsl/", "reference/")):
        return ""
    parts = path.removesuffix(".py").split("/")
    if parts[0] == "reference":
        parts.insert(0, "mtldsl")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@dataclass
class Module:
    """One Python file: its text, its tree, what it defines and imports at the top."""

    path: str
    text: bytes
    tree: ast.Module
    defined: dict[str, ast.stmt] = field(default_factory=dict)
    imported: dict[str, tuple[str, str | None]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return dotted(self.path)

    @property
    def is_package(self) -> bool:
        return self.path.endswith("__init__.py")


def read(path: str) -> Module:
    text = (ROOT / path).read_bytes()
    module = Module(path, text, ast.parse(text))
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            module.defined[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for one in ast.walk(target):
                    if isinstance(one, ast.Name):
                        module.defined.setdefault(one.id, node)
        elif isinstance(node, ast.ImportFrom):
            source = absolute(module, node)
            for alias in node.names:
                module.imported[alias.asname or alias.name] = (source, alias.name)
    return module


def absolute(module: Module, node: ast.ImportFrom) -> str:
    """Return the absolute module of an import."""
    if not node.level:
        return node.module or ""
    parts = (module.name + ("." if module.is_package else "")).split(".")
    parts = parts[: len(parts) - node.level]
    return ".".join([*parts, node.module] if node.module else parts)


def is_type_checking(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.If)
        and "TYPE_CHECKING" in ast.unparse(node.test)
        and all(isinstance(one, ast.Import | ast.ImportFrom) for one in node.body)
        and not node.orelse
    )


class House:
    """All files, the plan for some of them, and the edits that follow from it."""

    def __init__(self, rooms: list[str]):
        files = tracked()
        self.modules = {m.name: m for m in (read(path) for path in files if dotted(path))}
        self.clients = [path for path in files if path.endswith(".py") and not dotted(path)]
        self.texts = [path for path in files if path.endswith(TEXTS) and not path.endswith(".py")]
        self.plan: dict[str, str] = {}
        self.subjects: dict[str, Counter] = defaultdict(Counter)
        for line in MAP.read_text().splitlines()[1:]:
            today, target, subject = line.split("\t")
            if dotted(today) not in self.modules or not self.is_of(target, rooms):
                continue
            self.plan[dotted(today)] = target
            self.subjects[target][subject] += 1
        self.sources: dict[str, list[str]] = defaultdict(list)
        for name, target in self.plan.items():
            self.sources[target].append(name)
        for name, module in self.modules.items():  # what stands there already is merged with what comes
            if name not in self.plan and module.path in self.sources:
                self.plan[name] = module.path
                self.sources[module.path].insert(0, name)
        self.plan = {
            name: target
            for name, target in self.plan.items()
            if self.modules[name].path != target or len(self.sources[target]) > 1
        }
        self.sources = {
            target: self.in_order(names) for target, names in self.sources.items() if names[0] in self.plan
        }
        self.new_names: dict[tuple[str, str], str] = {}
        self.problems: list[str] = []
        for target, names in self.sources.items():
            self.tell_apart(target, names)

    @staticmethod
    def is_of(target: str, rooms: list[str]) -> bool:
        parts = target.split("/")
        room = "reference" if parts[0] == "reference" else parts[1] if len(parts) > 2 else ""
        return room in rooms or target in rooms

    # ------------------------------------------------------------------------------------------------ the plan

    def destination(self, module: str) -> str:
        return dotted(self.plan[module]) if module in self.plan else module

    def in_order(self, names: list[str]) -> list[str]:
        """Return the sources of a target, each after those that it imports."""
        found: list[str] = []

        def visit(name: str, path: tuple[str, ...] = ()):
            if name in found or name in path:
                return
            for module, attribute in self.modules[name].imported.values():
                for one in (module, f"{module}.{attribute}"):
                    if one in names and one != name:
                        visit(one, (*path, name))
            found.append(name)

        for name in sorted(names, key=lambda one: not self.modules[one].is_package):
            visit(name)
        return found

    def tell_apart(self, target: str, names: list[str]) -> None:
        """Give private names that several sources define a name of their own."""
        taken: dict[str, str] = {}
        for name in names:
            module = self.modules[name]
            for one, node in module.defined.items():
                if one in ("__all__", "__dir__"):
                    continue
                text = self.segment(module, node)
                if one not in taken:
                    taken[one] = text
                elif taken[one] != text:
                    stem = name.rsplit(".", 1)[1]
                    new = f"{one}_{stem.upper() if one.isupper() else stem}"
                    if (one[0].isupper() and not one.isupper()) or (
                        one.startswith("_") and one[1:2].isupper() and not one.isupper()
                    ):
                        new = one + stem.title().replace("_", "")
                    self.new_names[name, one] = new
                    if not one.startswith("_"):
                        self.problems.append(f"{target}: public name {one} of {name} becomes {new}")
        for name in names:  # a name that is imported from elsewhere may not be what another source defines
            for local, (module, attribute) in self.modules[name].imported.items():
                defined = [
                    other for other in names
                    if local in self.modules[other].defined and other != name and (other, local) not in self.new_names
                ]  # fmt: skip
                where = self.resolve(module, attribute, follow=True)
                if defined and where not in [(other, local) for other in defined] and where[0] not in names:
                    self.new_names[name, local] = f"{local}_of_{module.rsplit('.', 1)[-1]}"
                    self.problems.append(f"{target}: {name} imports another {local} ({module})")

    @staticmethod
    def segment(module: Module, node: ast.AST) -> str:
        return ast.get_source_segment(module.text.decode(), node) or ""

    def resolve(self, module: str, attribute: str | None, follow: bool) -> tuple[str, str | None]:
        """Return the module that defines a name, and the name; (module, None) for a module itself."""
        if attribute is None:
            return module, None
        if f"{module}.{attribute}" in self.modules:
            there = self.modules.get(module)
            if not (there and (attribute in there.defined or attribute in there.imported)):
                return f"{module}.{attribute}", None
        there = self.modules.get(module)
        if (
            there
            and follow
            and there.is_package
            and attribute in there.imported
            and attribute not in there.defined
        ):
            return self.resolve(*there.imported[attribute], follow=True)
        return module, attribute

    # ------------------------------------------------------------------------------------------------ one file

    def edits(self, module: Module, own: str) -> tuple[list[tuple[int, int, str]], list]:
        """Return the edits of one file, and the imports at its top where the file is merged into `own`."""
        return FileEdits(self, module, own).result()

    def moved(self, module: str) -> bool:
        return module in self.plan

    def in_text(self, text: str) -> str:
        """Rewrite imports, dotted names and paths in prose, doctests and settings."""

        def imports(match: re.Match) -> str:
            prefix, module, names = match.groups()
            if module not in self.modules:
                return match[0][len(prefix) :]
            listed = re.sub(r"\.\.\. |[()#]", " ", names).replace("\n", " ")
            groups: dict[str, list[str]] = {}
            for piece in filter(None, (one.strip() for one in listed.split(","))):
                words = piece.split()
                if not words or not words[0].isidentifier():
                    return match[0][len(prefix) :]
                where, attribute = self.resolve(module, words[0], follow=self.destination(module) != module)
                if attribute is None:
                    home, _, leaf = self.destination(where).rpartition(".")
                else:
                    home, leaf = self.destination(where), self.new_names.get((where, attribute), attribute)
                local = words[2] if len(words) == 3 else words[0]
                groups.setdefault(home, []).append(leaf if leaf == local else f"{leaf} as {local}")
            lines = [f"from {home} import {', '.join(group)}" for home, group in groups.items()]
            if lines == [f"from {module} import {listed.strip()}"] or list(groups) == [module]:
                return match[0][len(prefix) :]
            return f"\n{prefix}".join(lines)

        def names(match: re.Match) -> str:
            parts = match[0].split(".")
            for k in range(len(parts), 1, -1):
                module = ".".join(parts[:k])
                if module in self.modules:
                    rest = parts[k:]
                    if rest and self.modules[module].is_package:
                        where, attribute = self.resolve(
                            module, rest[0], follow=self.destination(module) != module
                        )
                        module, rest = where, [*([attribute] if attribute else []), *rest[1:]]
                    if not self.moved(module):
                        return match[0] if module == ".".join(parts[:k]) else ".".join([module, *rest])
                    if rest:
                        rest[0] = self.new_names.get((module, rest[0]), rest[0])
                    return ".".join([self.destination(module), *rest])
            return match[0]

        def path(match: re.Match) -> str:
            name = dotted(match[0])
            return self.plan.get(name, match[0])

        text = re.sub(r"((?:>>> |\.\.\. |[ \t]*)?)from (mtldsl[\w.]*) import (\([^)]*\)|[\w, ]+)",
                      lambda m: m[1] + imports(m), text)  # fmt: skip
        text = re.sub(r"(?<!from )(?<![\w./])mtldsl(?:\.[a-z_]\w*)+(?:\.\w+)*(?!/)", names, text)
        return re.sub(r"\b(?:mtldsl|reference)/[\w/]+\.py\b", path, text)

    # ------------------------------------------------------------------------------------------------ writing

    def run(self, dry: bool) -> int:
        written: dict[str, str] = {}
        for target, names in self.sources.items():
            written[target] = self.merged(target, names)
        others = [m for name, m in self.modules.items() if name not in self.plan]
        for module in [*others, *map(read, self.clients)]:
            edits, _ = self.edits(module, "")
            if edits:
                written[module.path] = applied(module.text, edits).decode()
        for path in self.texts:
            before = (ROOT / path).read_text()
            after = self.in_text(before)
            if after != before:
                written[path] = after
        for problem in self.problems:
            print("look:", problem)
        for target in self.sources:
            lines = written[target].count("\n")
            if lines > 600:
                print(f"look: {target} would have {lines} lines")
        print(f"{len(self.plan)} files become {len(self.sources)}; {len(written)} files are written")
        if dry:
            return 0
        for target, names in self.sources.items():
            largest = max(names, key=lambda name: len(self.modules[name].text))
            (ROOT / target).parent.mkdir(parents=True, exist_ok=True)
            if self.modules[largest].path != target and target not in [self.modules[n].path for n in names]:
                git("mv", self.modules[largest].path, target)
            for name in names:
                path = self.modules[name].path
                if path != target and (ROOT / path).exists():
                    git("rm", "-q", "-f", path)
        for path, text in written.items():
            (ROOT / path).write_text(text)
        python = [path for path in written if path.endswith(".py")]
        for start in range(0, len(python), 200):
            some = python[start : start + 200]
            subprocess.run(
                ["ruff", "check", "-q", "--select", "I001,F401,F811", "--fix", *some], cwd=ROOT, check=False
            )
            subprocess.run(["ruff", "format", "-q", *some], cwd=ROOT, check=False)
        git("add", "-A", *written)
        for module in self.modules.values():  # folders that nothing is left in
            folder = (ROOT / module.path).parent
            if folder.is_dir() and not any(
                p.suffix != ".pyc" and p.name != "__pycache__" for p in folder.rglob("*")
            ):
                subprocess.run(["rm", "-rf", str(folder)], check=True)
        return 0

    def merged(self, target: str, names: list[str]) -> str:
        """Return the text of a target: one docstring, one block of imports, the bodies."""
        gathered: dict[str, tuple] = {}
        bodies, public, directory, future = [], [], False, False
        for name in names:
            module = self.modules[name]
            edits, imports = self.edits(module, target)
            for local, (source, attribute, only_types, remark) in imports:
                before = gathered.get(local)
                if before and before[:2] != (source, attribute):
                    self.problems.append(f"{target}: {local} is {before[:2]} and {(source, attribute)}")
                if not before or before[2]:
                    gathered[local] = (source, attribute, only_types, remark or (before or ("",) * 4)[3])
            body = applied(module.text, edits).decode()
            future |= "from __future__ import annotations" in module.text.decode()
            if "__all__" in module.defined:
                value = module.defined["__all__"].value
                public += [one.value for one in value.elts if isinstance(one, ast.Constant)]
            directory |= "__dir__" in module.defined
            bodies.append((name, body.strip("\n")))
        stem = Path(target).stem
        own = [one for one in names if Path(self.modules[one].path).stem == stem] or names[: len(names) == 1]
        if own:
            doc = self.modules[own[0]].tree.body[0]
            head = self.in_text(self.segment(self.modules[own[0]], doc)) if isinstance(doc, ast.Expr) else ""
        else:
            subject = self.subjects[target].most_common(1)[0][0]
            head = f'"""{subject[:1].upper()}{subject[1:]}'.rstrip(".") + '."""'
        lines = [head, ""]
        if future:
            lines += ["from __future__ import annotations", ""]
        for only in (False, True):
            block = [
                statement(local, *entry) for local, entry in sorted(gathered.items()) if entry[2] is only
            ]
            if only and block:
                lines += ["from typing import TYPE_CHECKING", "", "if TYPE_CHECKING:"]
                block = [f"    {line}" for line in block]
            lines += block
        lines.append("")
        if public:
            kept = list(dict.fromkeys(public))
            lines += ["__all__ = [", *(f'    "{one}",' for one in sorted(kept)), "]", ""]
        if directory:
            lines += ["", "def __dir__() -> list[str]:", "    return __all__", ""]
        seen: set[str] = set()
        for name, body in bodies:
            body = self.without_repeats(name, body, seen)
            if not body.strip():
                continue
            doc = ast.get_docstring(self.modules[name].tree) or ""
            if len(names) > 1 and own[:1] != [name]:
                if ">>>" in doc:
                    self.problems.append(f"{target}: the doctest in the docstring of {name} became a comment")
                first, *rest = self.in_text(doc).split("\n")
                lines += ["", f"# {'-' * 110}", f"# {first}", *(f"# {line}".rstrip() for line in rest), ""]
            lines += [body, ""]
        return "\n".join(lines).rstrip("\n") + "\n"

    def without_repeats(self, name: str, body: str, seen: set[str]) -> str:
        """Leave out a definition that an earlier source has word by word."""
        try:
            tree = ast.parse(body)
        except SyntaxError as error:
            self.problems.append(f"{name}: {error}")
            return body
        lines = body.split("\n")
        for node in reversed(tree.body):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign):
                text = ast.get_source_segment(body, node) or ""
                own = (node.name if hasattr(node, "name") else ast.unparse(node.targets[0])) + "\0" + text
                if own in seen:
                    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
                    while first and lines[first - 1].startswith("#"):
                        first -= 1
                    del lines[first : node.end_lineno]
                else:
                    seen.add(own)
        return "\n".join(lines)


def statement(local: str, source: str, attribute: str | None, only_types: bool, remark: str) -> str:
    if attribute is None:
        text = (
            f"import {source}" if local in (source, source.split(".")[0]) else f"import {source} as {local}"
        )
    elif attribute == "*":
        text = f"from {source} import *"
    else:
        text = f"from {source} import {attribute}" + (f" as {local}" if local != attribute else "")
    return f"{text}  {remark}" if remark else text


def applied(text: bytes, edits: list[tuple[int, int, str]]) -> bytes:
    """Return the text with non-overlapping edits made, the last first; an edit inside another is left out."""
    kept: list[tuple[int, int, str]] = []
    for edit in sorted(set(edits), key=lambda one: (one[0], -one[1])):
        if kept and edit[0] < kept[-1][1]:
            continue
        kept.append(edit)
    for start, end, new in reversed(kept):
        text = text[:start] + new.encode() + text[end:]
    return text


class FileEdits(ast.NodeVisitor):
    """Edits of one file: imports, uses of names that are called otherwise now, texts."""

    def __init__(self, house: House, module: Module, own: str):
        self.house, self.module, self.own = house, module, own
        self.own_name = dotted(own) if own else module.name
        self.lines = [0]
        for line in module.text.split(b"\n"):
            self.lines.append(self.lines[-1] + len(line) + 1)
        self.found: list[tuple[int, int, str]] = []
        self.tops: list[tuple[str, tuple]] = []
        self.scopes: list[set[str]] = []
        self.renames: dict[str, str] = {}  # names of the whole file -> what they are called now
        self.objects: dict[
            str, tuple[str, str]
        ] = {}  # names of modules -> (module, prefix it is reached by now)
        self.packages: set[str] = set()  # names of the package itself
        self.used = {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name)}
        self.used |= {node.arg for node in ast.walk(module.tree) if isinstance(node, ast.arg)}
        for (name, one), new in house.new_names.items():
            if name == module.name:
                self.renames[one] = new

    def at(self, line: int, column: int) -> int:
        return self.lines[line - 1] + column

    def span(self, node) -> tuple[int, int]:
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def result(self):
        tree = self.module.tree
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.top(node, False)
            elif is_type_checking(node):
                for one in node.body:
                    self.top(one, True)
                if self.own:
                    self.drop(node)
            elif self.own and isinstance(node, ast.Assign | ast.FunctionDef) and (
                getattr(node, "name", "") == "__dir__" or getattr(getattr(node, "targets", [None])[0], "id", "") == "__all__"
            ):  # fmt: skip
                self.drop(node)
        if (
            self.own
            and tree.body
            and isinstance(tree.body[0], ast.Expr)
            and isinstance(tree.body[0].value, ast.Constant)
        ):
            self.drop(tree.body[0])
        self.visit(tree)
        self.strings()
        return self.found, self.tops

    def drop(self, node) -> None:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        self.found.append(
            (self.lines[first - 1], min(self.lines[node.end_lineno], len(self.module.text)), "")
        )

    def remark(self, node) -> str:
        first, last = node.lineno, node.end_lineno
        tail = self.module.text[self.span(node)[1] : self.lines[last]].decode().strip()
        if not tail and "(  #" in (
            opening := self.module.text[self.lines[first - 1] : self.lines[first]].decode()
        ):
            tail = opening[opening.index("#") :].strip()
        return tail if tail.startswith("# noqa") or tail.startswith("# pyrefly") else ""

    # ------------------------------------------------------------------------------------------------ imports

    def entries(self, node):
        """Yield (local name, new module, new name or None, old module) of each imported name."""
        house = self.house
        if isinstance(node, ast.Import):
            for alias in node.names:
                module = alias.name
                if alias.asname is None and module.startswith("mtldsl"):
                    self.packages.add("mtldsl")
                yield (
                    alias.asname or house.destination(module),
                    house.destination(module),
                    None,
                    module,
                    alias,
                )
            return
        source = absolute(self.module, node)
        for alias in node.names:
            local = alias.asname or alias.name
            if alias.name == "*":
                yield f"*{source}", house.destination(source), "*", source, alias
                continue
            follow = bool(self.module.name) or house.destination(source) != source
            where, attribute = house.resolve(source, alias.name, follow=follow)
            if source not in house.modules and where not in house.modules:
                yield local, source, alias.name, source, alias
            elif attribute is None:
                home, _, leaf = house.destination(where).rpartition(".")
                yield local, home, leaf, where, alias
            else:
                new = house.new_names.get((where, attribute), attribute)
                yield local, house.destination(where), new, where, alias

    def top(self, node, only_types: bool) -> None:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            if self.own:
                self.drop(node)
            return
        changed, kept = False, []
        for local, home, name, old, alias in self.entries(node):
            is_module = isinstance(node, ast.ImportFrom) and alias.name != "*" and (
                f"{home}.{name}" == self.house.destination(old) and old in self.house.modules and
                self.house.resolve(absolute(self.module, node), alias.name, True)[1] is None
            )  # fmt: skip
            if isinstance(node, ast.Import) and alias.name == "mtldsl":
                self.packages.add(local)
            inside = self.own and home == self.own_name and not is_module and old in self.house.modules
            if is_module and self.own and self.house.destination(old) == self.own_name:
                self.objects[local] = (old, "")
                changed = True
                continue
            if inside and name != "*":
                if name != local:
                    self.renames[local] = name
                changed = True
                continue
            if is_module:
                leaf = name
                if leaf != local and alias.asname is None and leaf not in self.used and not self.bound(leaf):
                    self.objects[local] = (old, leaf)
                    local = leaf
                else:
                    self.objects[local] = (old, local)
            elif (
                isinstance(node, ast.ImportFrom)
                and name != alias.name
                and alias.asname is None
                and name != "*"
            ):
                if self.module.name or name not in self.used:
                    self.renames[local] = name
                    local = name
            elif self.own and local in self.renames:
                local = self.renames[local]
            before = (
                (absolute(self.module, node), alias.name)
                if isinstance(node, ast.ImportFrom)
                else (alias.name, None)
            )
            changed |= (home, name) != before
            kept.append((local, (home, name, only_types, self.remark(node))))
        if self.own:
            self.tops += kept
            if not only_types:
                self.drop(node)
        elif changed:
            self.replace(node, kept)

    def bound(self, name: str) -> bool:
        return name in self.module.imported or name in self.module.defined

    def replace(self, node, kept) -> None:
        indent = " " * node.col_offset
        groups: dict[str, list[str]] = {}
        plain = []
        for local, (home, name, _, _) in kept:
            if name is None:
                plain.append(statement(local, home, None, False, ""))
            else:
                groups.setdefault(home, []).append(
                    name if local in (name, f"*{home}") or name == "*" else f"{name} as {local}"
                )
        texts = plain + [f"from {home} import {', '.join(names)}" for home, names in groups.items()]
        start, end = self.span(node)
        remark = self.remark(node)
        if remark and remark not in self.module.text[end : self.lines[node.end_lineno]].decode():
            texts = [f"{text}  {remark}" for text in texts]  # it stood behind the opening bracket
        self.found.append((start, end, f"\n{indent}".join(texts) or "pass"))

    def inner(self, node) -> None:
        """Rewrite an import inside a function."""
        changed, kept, after = False, [], []
        for local, home, name, old, alias in self.entries(node):
            is_module = isinstance(node, ast.ImportFrom) and alias.name != "*" and old in self.house.modules and (
                self.house.resolve(absolute(self.module, node), alias.name, True)[1] is None
            )  # fmt: skip
            if isinstance(node, ast.Import) and alias.name == "mtldsl":
                self.packages.add(local)
            if is_module:
                self.objects[local] = (old, local)
                if self.own and self.house.destination(old) == self.own_name:
                    self.objects[local] = (old, "")
                    changed = True
                    continue
            elif self.own and home == self.own_name and old in self.house.modules:
                changed = True
                if name != local:
                    after.append(f"{local} = {name}")
                continue
            before = (
                (absolute(self.module, node), alias.name)
                if isinstance(node, ast.ImportFrom)
                else (alias.name, None)
            )
            changed |= (home, name) != before
            kept.append((local, (home, name, False, "")))
        if not changed:
            return
        if not kept:
            start, end = self.span(node)
            alone = any(
                len(getattr(parent, part, [])) == 1 and getattr(parent, part)[0] is node
                for parent in ast.walk(self.module.tree) for part in ("body", "orelse", "finalbody")
                if isinstance(getattr(parent, part, None), list)
            )  # fmt: skip
            indent = " " * node.col_offset
            if after:
                self.found.append((start, end, f"\n{indent}".join(after)))
            elif alone:
                self.found.append((start, end, "pass"))
            else:
                self.drop(node)
            return
        self.replace(node, kept)
        if after:
            start, end, text = self.found.pop()
            self.found.append(
                (start, end, "\n".join([text, *(" " * node.col_offset + one for one in after)]))
            )

    def visit_Import(self, node):
        if self.scopes or node not in self.module.tree.body:
            self.inner(node) if not self.in_types(node) else None

    visit_ImportFrom = visit_Import

    def in_types(self, node) -> bool:
        return any(is_type_checking(one) and node in one.body for one in self.module.tree.body)

    # ------------------------------------------------------------------------------------------------ names

    @staticmethod
    def locals_of(node) -> set[str]:
        """Return the names that a function or a comprehension binds."""
        names: set[str] = set()
        if isinstance(node, FUNCTIONS):
            every = node.args
            for one in (*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg):
                if one:
                    names.add(one.arg)
        if isinstance(node, ast.Lambda):
            return names
        if isinstance(node, COMPREHENSIONS):
            for generator in node.generators:
                names |= {one.id for one in ast.walk(generator.target) if isinstance(one, ast.Name)}
            return names
        outer: set[str] = set()
        stack = list(node.body)
        while stack:
            one = stack.pop()
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(one.name)
                continue
            if isinstance(one, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
                names |= {w.target.id for w in ast.walk(one) if isinstance(w, ast.NamedExpr)}
                continue
            if isinstance(one, ast.Global):
                outer |= set(one.names)
            elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store | ast.Del):
                names.add(one.id)
            elif isinstance(one, ast.ExceptHandler) and one.name:
                names.add(one.name)
            elif isinstance(one, ast.Import | ast.ImportFrom):
                names |= {(a.asname or a.name).split(".")[0] for a in one.names}
            elif isinstance(one, ast.MatchAs | ast.MatchStar) and one.name:
                names.add(one.name)
            stack += ast.iter_child_nodes(one)
        return names - outer

    def is_global(self, name: str) -> bool:
        return not any(name in scope for scope in self.scopes)

    def visit_FunctionDef(self, node):
        if not self.scopes and node.name in self.renames and node in self.module.tree.body:
            start = self.module.text.index(node.name.encode(), self.at(node.lineno, node.col_offset))
            self.found.append((start, start + len(node.name.encode()), self.renames[node.name]))
        for one in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(one)
        for one in (
            *node.args.posonlyargs,
            *node.args.args,
            *node.args.kwonlyargs,
            node.args.vararg,
            node.args.kwarg,
        ):
            if one is not None and one.annotation is not None:
                self.visit(one.annotation)
        if node.returns is not None:
            self.visit(node.returns)
        self.scopes.append(self.locals_of(node))
        for one in node.body:
            self.visit(one)
        self.scopes.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        if not self.scopes and node.name in self.renames:
            start = self.module.text.index(node.name.encode(), self.at(node.lineno, node.col_offset))
            self.found.append((start, start + len(node.name.encode()), self.renames[node.name]))
        self.generic_visit(node)

    def visit_Lambda(self, node):
        for one in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(one)
        self.scopes.append(self.locals_of(node))
        self.visit(node.body)
        self.scopes.pop()

    def comprehension(self, node):
        self.visit(node.generators[0].iter)
        self.scopes.append(self.locals_of(node))
        self.generic_visit(node)
        self.scopes.pop()

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    def visit_Name(self, node):
        if node.id in self.renames and self.is_global(node.id):
            self.found.append((*self.span(node), self.renames[node.id]))
        elif (
            node.id in self.objects
            and self.objects[node.id][1] not in ("", node.id)
            and self.is_global(node.id)
        ):
            self.found.append((*self.span(node), self.objects[node.id][1]))

    def visit_Global(self, node):
        for one in node.names:
            if one in self.renames:
                start = self.module.text.index(one.encode(), self.span(node)[0])
                self.found.append((start, start + len(one.encode()), self.renames[one]))

    def visit_Attribute(self, node):
        chain, root = [node], node.value
        while isinstance(root, ast.Attribute):
            chain.append(root)
            root = root.value
        chain.reverse()
        if isinstance(root, ast.Name):
            house = self.house
            if root.id in self.packages and not any(
                root.id in scope for scope in self.scopes if root.id not in scope
            ):
                for k in range(len(chain), 0, -1):
                    old = ".".join(["mtldsl", *(one.attr for one in chain[:k])])
                    if old in house.modules and house.moved(old):
                        text = house.destination(old).split(".", 1)[1]
                        if k < len(chain):
                            text += "." + house.new_names.get((old, chain[k].attr), chain[k].attr)
                            k += 1
                        self.found.append((self.span(root)[1], self.span(chain[k - 1])[1], f".{text}"))
                        return
            elif root.id in self.objects:
                old, prefix = self.objects[root.id]
                name = house.new_names.get((old, chain[0].attr), chain[0].attr)
                if prefix != root.id or name != chain[0].attr:
                    self.found.append(
                        (self.span(root)[0], self.span(chain[0])[1], f"{prefix}.{name}" if prefix else name)
                    )
                return
        self.generic_visit(node)

    def visit_Call(self, node):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in ("setattr", "delattr", "getattr", "object") and len(node.args) >= 2:
            first, second = node.args[:2]
            if isinstance(first, ast.Name) and first.id in self.objects and isinstance(second, ast.Constant):
                new = self.house.new_names.get((self.objects[first.id][0], second.value))
                if new:
                    self.found.append((*self.span(second), repr(new).replace("'", '"')))
        self.generic_visit(node)

    # ------------------------------------------------------------------------------------------------ texts

    def strings(self) -> None:
        tokens = tokenize.tokenize(io.BytesIO(self.module.text).readline)
        text = self.module.text.decode().split("\n")
        for token in tokens:
            if token.type in (tokenize.STRING, tokenize.COMMENT) and (
                "mtldsl" in token.string or "reference/" in token.string
            ):
                new = self.house.in_text(token.string)
                if new != token.string:
                    (first, left), (last, right) = token.start, token.end
                    start = self.lines[first - 1] + len(text[first - 1][:left].encode())
                    end = self.lines[last - 1] + len(text[last - 1][:right].encode())
                    self.found.append((start, end, new))


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rooms", nargs="+", help="rooms or single targets of the map")
    parser.add_argument("--dry-run", action="store_true")
    given = parser.parse_args()
    return House(given.rooms).run(given.dry_run)


if __name__ == "__main__":
    sys.exit(main())
