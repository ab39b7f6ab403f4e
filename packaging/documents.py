#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Copies the documents and examples of timely-tools to a directory, for the packages:

    documents.py DIRECTORY

The examples lie in DIRECTORY/examples, other files where they lie in the sources. A link leads to the
copy of its file. A link to a file that is not copied, such as a result, becomes its text.
"""

import os
import pathlib
import re
import shutil
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"!?\[([^]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def copies() -> dict[pathlib.Path, pathlib.Path]:
    """The copied files and where each is copied to, relative to the sources and to the directory."""
    documents = ["README.md", "CHANGELOG.md", "SECURITY.md", "packaging/README.md"]
    files = {pathlib.Path(name): pathlib.Path(name) for name in documents}
    for path in (TOP / "Documentation").glob("*.md"):
        files[path.relative_to(TOP)] = path.relative_to(TOP)
    for source, target in ("examples", "examples"), ("monitoring", "examples/monitoring"):
        for path in (TOP / "packaging" / source).rglob("*"):
            if path.is_file() and "test" not in path.name and "__pycache__" not in path.parts:
                files[path.relative_to(TOP)] = target / path.relative_to(TOP / "packaging" / source)
    return files


def relink(text: str, source: pathlib.Path, files: dict[pathlib.Path, pathlib.Path]) -> str:
    """The text of the document, with links that are right in its copy."""

    def link(match: re.Match[str]) -> str:
        words, target, fragment = match.group(1), match.group(2), match.group(3) or ""
        if not target or ":" in target:
            return match.group()
        file = pathlib.Path(os.path.normpath(source.parent / target))
        if file not in files:
            return words
        way = os.path.relpath(files[file], files[source].parent)
        return f"[{words}]({way}{fragment})"

    return LINK.sub(link, text)


def main() -> None:
    """Copies all files."""
    directory = pathlib.Path(sys.argv[1])
    files = copies()
    for source, target in sorted(files.items()):
        path = directory / target
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(TOP / source, path)
        if source.suffix == ".md":
            path.write_text(relink((TOP / source).read_text("utf-8"), source, files), "utf-8")
        path.chmod(0o755 if os.access(TOP / source, os.X_OK) else 0o644)


main()
