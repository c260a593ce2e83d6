"""How many lines the project has, by package and kind of file.

    python -m benchmarks.lines [REVISION]

A cell is all lines / lines of code: those with more on them than blanks, comments and
docstrings. Without a revision the files of the working tree are counted.
"""

import argparse
import ast
import io
import re
import subprocess
import tarfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
KINDS = {
    ".py": "Python",
    ".yaml": "YAML",
    ".json": "JSON",
    ".js": "JavaScript",
    ".css": "CSS",
    ".md": "pages",
} | dict.fromkeys((".cpp", ".h", ".cu"), "C++")
# Folders that are counted, and how many parts of a path name a row.
DEPTHS = {"src": 3, "studies": 2, "tests": 2, "benchmarks": 1, "docs": 1, "examples": 1}
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT}
LAYOUT |= {tokenize.DEDENT, tokenize.ENDMARKER}
# Texts are matched too, so that a comment sign inside one starts no comment.
C_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)
CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
YAML_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)


def python_code(text: str) -> int:
    """Lines of Python without blanks, comments and docstrings."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                code.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(code)


def code_lines(suffix: str, text: str) -> int:
    """Lines of code in a file of one of the kinds."""
    if suffix == ".py":
        return python_code(text)
    if suffix in {".js", ".cpp", ".h", ".cu"}:
        text = C_COMMENT.sub(lambda m: m[0] if m[0][0] == '"' else "", text)
    elif suffix == ".css":
        text = CSS_COMMENT.sub("", text)
    elif suffix == ".yaml":
        text = YAML_COMMENT.sub("", text)
    return sum(bool(line.strip()) for line in text.splitlines())


def git(*arguments: str) -> bytes:
    """What a git command prints."""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True
    )
    return done.stdout


def texts(revision: str | None) -> Iterator[tuple[PurePosixPath, str]]:
    """Path and text of every file that is counted."""
    if revision is None:
        listed = git("ls-files", "-co", "--exclude-standard").decode().splitlines()
        for path in map(PurePosixPath, listed):
            if wanted(path) and (ROOT / path).is_file():
                yield path, (ROOT / path).read_text()
        return
    with tarfile.open(fileobj=io.BytesIO(git("archive", revision))) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if wanted(path) and (file := archive.extractfile(member)) is not None:
                yield path, file.read().decode()


def wanted(path: PurePosixPath) -> bool:
    return path.suffix in KINDS and path.parts[0] in DEPTHS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("revision", nargs="?", help="a commit, branch or tag")
    rows: dict[str, Counter[tuple[str, str]]] = {}
    for path, text in texts(parser.parse_args().revision):
        folders = path.parent.parts[: DEPTHS[path.parts[0]]]
        kind = KINDS[path.suffix]
        # A package, and all packages together.
        names = {
            "/".join(folders),
            "/".join(folders[: 2 if folders[0] == "src" else 1]),
        }
        for name in {f"{name}/" for name in names if name != "src"}:
            row = rows.setdefault(name, Counter())
            row[kind, "all"] += len(text.splitlines())
            row[kind, "code"] += code_lines(path.suffix, text)
    kinds = list(dict.fromkeys(KINDS.values()))
    table = [["", *kinds]]
    for name, row in sorted(rows.items()):
        cells = [f"{row[kind, 'all']:,} / {row[kind, 'code']:,}" for kind in kinds]
        table.append([name, *("" if cell == "0 / 0" else cell for cell in cells)])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for name, *cells in table:
        sized = zip(cells, widths[1:], strict=True)
        print(name.ljust(widths[0]), *(cell.rjust(width) for cell, width in sized))


if __name__ == "__main__":
    main()
