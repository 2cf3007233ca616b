"""A public name in code, on any page of the site, is a link to its page of the API reference."""

from __future__ import annotations

import api_pages
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

import mtldsl

#: names that pages mean otherwise, too, unless they are called
_ALSO_ENGLISH = {
    "model",
    "models",
    "tree",
    "identity",
    "union",
    "clusters",
    "individual",
    "scan",
    "store",
    "stored",
    "rank",
    "Set",
    "Point",
}


class Names(SphinxTransform):
    """A public name in code, on any page, is a link to its page of the reference."""

    default_priority = 400
    known: dict[str, str] = {}  # noqa: RUF012  filled at the start of a build

    def apply(self, **kwargs) -> None:
        for node in list(self.document.findall(nodes.literal)):
            if isinstance(node.parent, nodes.reference | nodes.title | addnodes.pending_xref | nodes.term):
                continue
            typed, called, rest = node.astext().partition("(")
            if called and not _whole(rest):  # the code is a sum, or goes on behind the call
                continue
            typed = typed.removeprefix("mtldsl.").removeprefix("mtl.")
            target = self.known.get(typed)
            if (
                target is None
                or (typed in _ALSO_ENGLISH and not called)
                or self.env.docname == f"api/{target}"
            ):
                continue
            link = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refdoc=self.env.docname
            )
            node.replace_self(link)
            link += node


def _whole(rest: str) -> bool:
    """Whether what follows an opening bracket ends with the bracket that closes it."""
    depth = 1
    for at, character in enumerate(rest):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            return at == len(rest) - 1
    return False


def known() -> dict[str, str]:
    """What people write in code, and the name that it means."""
    names = {}
    for group in api_pages.groups():
        for name in group.names:
            names.setdefault(api_pages.short(name), name)
            names.setdefault(name.removeprefix("mtldsl."), name)
    for variable, cls in (
        ("tasks", mtldsl.Tasks),
        ("problem", mtldsl.Problem),
        ("solution", mtldsl.Solution),
    ):
        for method in dir(cls):
            if not method.startswith("_") and callable(getattr(cls, method)):
                names[f"{variable}.{method}"] = names[f"{cls.__name__}.{method}"] = (
                    f"mtldsl.{cls.__name__}.{method}"
                )
    return names


def setup(app: Sphinx) -> dict:
    Names.known = known()
    app.add_transform(Names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
