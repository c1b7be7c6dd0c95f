"""Hooks of MkDocs: pages outside of `docs/`, and links to files that are not pages.

The pages are written for the repository, where a link may lead to any file of it. On the site, such a link leads to
the file in the public repository, if the checkout has it.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import TYPE_CHECKING, Final

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

CHECKOUT: Final = Path(__file__).resolve().parents[2]
REPOSITORY: Final = "https://github.com/tidewatch/tidewatch"
OUTSIDE: Final = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "helm/tidewatch/README.md": "chart.md",
}
"""The names of pages on the site by their paths in the repository."""
NOT_SEARCHED: Final = frozenset({"rooms.md", "changelog.md"})
"""Pages that are long lists of names, which the search would rank above the pages that explain them."""
_CODE_OR_LINK: Final = re.compile(
    r"^ *```.*?^ *```|`[^`\n]*`|\]\((?!https?:|mailto:|#)(?P<path>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)",
    re.MULTILINE | re.DOTALL,
)


_CODE: Final = re.compile(r"`[^`\n]*`")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are outside of `docs/`."""
    for path, name in OUTSIDE.items():
        files.append(File.generated(config, name, content=(CHECKOUT / path).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page with links that lead to pages of the site, or into the repository."""
    del config
    name = page.file.src_uri
    if name in NOT_SEARCHED:
        page.meta["search"] = {"exclude": True}
    return links_for_the_site(pipes_for_the_site(markdown), name, frozenset(files.src_uris))


def pipes_for_the_site(markdown: str) -> str:
    """Return a page whose tables show `|` in code: GitHub needs a backslash before it, which MkDocs would show."""
    lines = (_CODE.sub(_without_backslash, line) if line.startswith("|") else line for line in markdown.split("\n"))
    return "\n".join(lines)


def _without_backslash(code: re.Match[str]) -> str:
    return code[0].replace("\\|", "|")


def links_for_the_site(markdown: str, name: str, pages: frozenset[str]) -> str:
    """Return a page of this name with its links, which are relative to its place in the repository, for the site.

    `pages` are the names of all files of the site. A link to a file that the checkout does not have stays as it is, so
    that the strict build fails.
    """
    source = next((path for path, page in OUTSIDE.items() if page == name), f"docs/{name}")

    def link(match: re.Match[str]) -> str:
        if match["path"] is None:
            return match[0]
        target = normpath(PurePosixPath(source).parent / match["path"])
        page = OUTSIDE.get(target, target.removeprefix("docs/") if target.startswith("docs/") else "")
        anchor = match["anchor"] or ""
        if page in pages:
            return f"]({relpath(page, PurePosixPath(name).parent)}{anchor})"
        if target.startswith("../") or not (CHECKOUT / target).exists():
            return match[0]
        kind = "tree" if (CHECKOUT / target).is_dir() else "blob"
        return f"]({REPOSITORY}/{kind}/main/{target}{anchor})"

    return _CODE_OR_LINK.sub(link, markdown)
