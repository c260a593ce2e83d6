"""Reads GraphML, as networkx and others write it.

The file is read as a stream of elements. A document type declaration is refused, so
there are no entities to expand and nothing outside the file is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, NoReturn
from xml.parsers import expat

import numpy as np

from tempergat.base import UserError, explain_unreadable
from tempergat.data.tables.folder import join_tables
from tempergat.data.tables.nodes import read_nodes
from tempergat.data.tables.table import Table
from tempergat.data.user.options import ReadOptions
from tempergat.data.user.user_graph import UserGraph

# The columns that a node or an edge has without any attribute.
_OWN_COLUMNS = {"node": ("id",), "edge": ("source", "target")}


def read_graphml(
    path: Path, options: ReadOptions, require_finite: bool, labelled: bool
) -> UserGraph:
    """Reads a GraphML file. Attributes are columns, as in tables.

    Args:
        path: The file.
        options: How its attributes are read.
        require_finite: Whether missing values and infinity are refused as features.
        labelled: Whether there must be labels.

    Raises:
        UserError: The file is not one plain graph, or contradicts itself.
    """
    if options.id is not None:
        raise UserError(
            f"--id is {options.id!r}, but edges in {path} name nodes by the id of "
            "their element; leave the option out"
        )
    found = parse_graphml(path)
    options = replace(options, id="id")
    nodes = read_nodes(path, [found.nodes], options, require_finite, labelled)
    graph = join_tables(nodes, path, [found.edges], {}, options, labelled)
    return replace(
        graph,
        undirected=not found.directed,
        notes=(*graph.notes, *found.notes),
        how_read=replace(graph.how_read, nodes="the ids of the file"),
    )


@dataclass(frozen=True)
class GraphMLTables:
    """A GraphML file as tables.

    Attributes:
        nodes: A column `id`, and one for each attribute of nodes.
        edges: Columns `source` and `target`, and one for each attribute of edges.
        directed: Whether the file says that its edges have a direction.
        notes: A sentence on each attribute that is not read.
    """

    nodes: Table
    edges: Table
    directed: bool
    notes: tuple[str, ...]


def parse_graphml(path: Path) -> GraphMLTables:
    """Parses a file with one graph.

    Raises:
        UserError: It is not well-formed, declares a document type, or holds anything
            but one plain graph.
    """
    parser = _Parser(path)
    with explain_unreadable(path), open(path, "rb") as stream:
        parser.parse(stream)
    return parser.tables()


@dataclass
class _Key:
    """An attribute that the file declares."""

    # Empty for one that is not read.
    name: str
    owner: str
    default: str = ""


@dataclass
class _Rows:
    """Nodes or edges with the attributes that each has."""

    values: list[dict[str, str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def table(
        self, path: Path, own: tuple[str, ...], defaults: Mapping[str, str]
    ) -> Table:
        present = dict.fromkeys(name for row in self.values for name in row)
        columns = {}
        for name in (*own, *(name for name in present if name not in own)):
            column = np.empty(len(self.values), dtype=object)
            default = defaults.get(name, "")
            column[:] = [row.get(name, default) for row in self.values]
            columns[name] = column
        return Table(path, columns, np.array(self.lines, dtype=np.int64))


class _Parser:
    """Collects nodes and edges while the file is parsed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._keys: dict[str, _Key] = {}
        self._last_key = ""
        self._rows = {"node": _Rows(), "edge": _Rows()}
        self._directed: bool | None = None
        self._open: list[str] = []
        # The attribute or the default whose text is being read.
        self._reading: str | None = None
        self._pieces: list[str] = []
        # How many elements are open around it.
        self._depth = 0
        self._unread: dict[str, None] = {}

    def parse(self, stream: IO[bytes]) -> None:
        try:
            self._parser.ParseFile(stream)
        except expat.ExpatError as error:
            raise UserError(
                f"{self._path} is not well-formed GraphML ({error}); save it again"
            ) from error

    def tables(self) -> GraphMLTables:
        if self._directed is None:
            self._refuse("has no element graph", "save a graph as GraphML")
        tables = {}
        for kind, rows in self._rows.items():
            defaults = {
                key.name: key.default
                for key in self._keys.values()
                if key.owner in (kind, "all") and key.default
            }
            tables[kind] = rows.table(self._path, _OWN_COLUMNS[kind], defaults)
        notes = tuple(
            f"{self._path}: the attribute {name} is not read, because {name} is "
            "part of GraphML itself; rename it to use it"
            for name in self._unread
        )
        return GraphMLTables(tables["node"], tables["edge"], self._directed, notes)

    def _refuse(self, problem: str, remedy: str) -> NoReturn:
        line = self._parser.CurrentLineNumber
        raise UserError(f"{self._path}, line {line}, {problem}; {remedy}")

    def _refuse_doctype(self, *_declaration: object) -> None:
        self._refuse(
            "declares a document type, which could define entities",
            "remove the line that begins with <!DOCTYPE",
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        element = name.rpartition(" ")[2]
        inside = self._open[-1] if self._open else None
        self._open.append(element)
        if element == "key":
            self._last_key = attributes.get("id", "")
            name = attributes.get("attr.name", self._last_key)
            if "yfiles.type" in attributes:
                # How the program yEd draws a node, which is no attribute of it.
                name = ""
            self._keys[self._last_key] = _Key(name, attributes.get("for", "all"))
        elif element == "graph":
            if self._directed is not None:
                self._refuse("begins a second graph", "save one graph in a file")
            self._directed = attributes.get("edgedefault", "directed") == "directed"
        elif element in ("hyperedge", "locator"):
            self._refuse(f"has an element {element}", "save a plain graph")
        elif element in self._rows:
            self._add(element, attributes)
        elif element == "data" and inside in self._rows:
            self._reading, self._depth = attributes.get("key", ""), len(self._open) - 1
            if self._reading not in self._keys:
                self._refuse(
                    f"has data of the key {self._reading!r}, which is not declared",
                    "save the graph again",
                )
        elif element == "default" and inside == "key":
            self._reading, self._depth = self._last_key, len(self._open) - 1
        if len(self._open) - 1 == self._depth:
            self._pieces = []

    def _add(self, kind: str, attributes: dict[str, str]) -> None:
        own = {name: attributes.get(name) for name in _OWN_COLUMNS[kind]}
        for name, value in own.items():
            if value is None:
                self._refuse(f"has no {name} for this {kind}", f"give it a {name}")
        is_directed = "true" if self._directed else "false"
        if attributes.get("directed", is_directed) != is_directed:
            self._refuse(
                "has an edge whose direction differs from the graph's edgedefault",
                "make all edges directed, or none",
            )
        rows = self._rows[kind]
        rows.values.append({name: value or "" for name, value in own.items()})
        rows.lines.append(self._parser.CurrentLineNumber)

    def _text(self, text: str) -> None:
        if self._reading is not None:
            self._pieces.append(text)

    def _end(self, _name: str) -> None:
        element = self._open.pop()
        if self._reading is None or len(self._open) != self._depth:
            return
        key, text = self._keys[self._reading], "".join(self._pieces)
        self._reading, self._pieces = None, []
        if element == "default":
            key.default = text
            return
        if key.name == "":
            return
        kind = self._open[-1]
        if key.name in _OWN_COLUMNS[kind]:
            self._unread[key.name] = None
        else:
            self._rows[kind].values[-1][key.name] = text
