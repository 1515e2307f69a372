"""How Sphinx makes the pages of docs/, the README and ARCHITECTURE into a site: `make docs`."""

import os
import re
from pathlib import Path

import gristmill

ROOT = Path(__file__).resolve().parent.parent

project = "Gristmill"
release = version = gristmill.__version__
copyright = "the authors of Gristmill"
language = "en"

extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["requirements.txt", "**/.ipynb_checkpoints"]

# Sources of pages that are elsewhere are included by pages here; links in both are those of the repository.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
# The notebook is committed as it ran; tests/test_notebook.py runs it again.
nb_execution_mode = "off"

html_theme = "furo"
html_title = "Gristmill"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
nitpicky = False


#: Pages of the repository outside docs/, and the pages of the site that include them.
INCLUDED = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "bench/RESULTS.md": "results.md",
}
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)([^)#\s]+)(#[^)\s]*)?\)")


def as_of_the_site(folder: Path, text: str) -> str:
    """The text of a page in this folder of the repository, whose links to pages are those of the site. Pictures stay; other files
    and folders of the repository are named and not linked, for a site stands without it."""

    def link(found: re.Match[str]) -> str:
        said, target, part = found[1], found[2], found[3] or ""
        to = (folder / target).resolve()
        if found.string[found.start() - 1 : found.start()] == "!" or not to.is_relative_to(ROOT):
            return found[0]
        name = to.relative_to(ROOT).as_posix()
        name = f"docs/{INCLUDED[name]}" if name in INCLUDED else name
        if not name.startswith("docs/"):
            return said
        return f"[{said}]({os.path.relpath(ROOT / name, folder)}{part})"

    return LINK.sub(link, text)


def source(app, docname, content):
    page = Path(app.env.doc2path(docname))
    if page.suffix == ".md":
        content[0] = as_of_the_site(page.parent, content[0])


def included(app, relative_path, parent, content):
    content[0] = as_of_the_site((Path(app.srcdir) / relative_path).resolve().parent, content[0])


def setup(app):
    app.connect("source-read", source)
    app.connect("include-read", included)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
