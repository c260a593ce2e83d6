"""Reads GraphML, as networkx and others write it.

The file is read as a stream of elements. A document type declaration is refused, so
there are no entities to expand and nothing outside the file is read.

networkx would merge nodes of one id, add nodes that only edges name, leave out a second
graph, turn values into numbers and forget the lines, so it does not read the file here.
"""

from dataclasses import replace
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

import numpy as np

from tempergat.base import UserError, explain_unreadable
from tempergat.data.tables.folder import join_tables
from tempergat.data.tables.nodes import read_nodes
from tempergat.data.tables.table import Table, find_column
from tempergat.data.user.reading import Reading, UserGraph

# The columns that a node or an edge has without any attribute.
_OWN_COLUMNS = {"node": ("id",), "edge": ("source", "target")}
# expat reads an element from its beginning again for every piece that it spans.
_PIECE_BYTES = 2**24


def read_graphml(path: Path, reading: Reading) -> UserGraph:
    """Reads a GraphML file. Attributes are columns, as in tables.

    Raises:
        UserError: The file is not well-formed, declares a document type, is not one
            plain graph, or contradicts itself.
    """
    parser = _Parser(path)
    with explain_unreadable(path):
        parser.parse()
    node_table, edge_table = parser.table("node"), parser.table("edge")
    given = id_column = reading.options.id or "id"
    if given != "id":
        # Edges name nodes by their elements, and the user by an attribute.
        id_column = find_column(node_table, given, "id")
        elements = node_table.columns.pop("id")
        names = node_table.columns[id_column]
        name_of = dict(zip(elements, names, strict=True))
        for end in ("source", "target"):
            ends = [name_of.get(node, node) for node in edge_table.columns[end]]
            edge_table.columns[end] = np.array(ends, dtype=object)
    named = reading.with_options(id=id_column, source="source", dest="target")
    nodes = read_nodes(iter([node_table]), (), named)
    graph = join_tables(nodes, iter([edge_table]), {}, named)
    reading.notes.extend(
        f"{path}: the attribute {name} is not read, because {name} is part of GraphML "
        "itself; rename it to use it"
        for name in parser.unread
    )
    named_by = reading.options.id or "the ids of the file"
    return replace(
        graph,
        undirected=not parser.directed,
        how_read=replace(graph.how_read, nodes=named_by),
    )


class _Parser:
    """Collects nodes and edges while a file is parsed.

    Attributes:
        directed: Whether the file says that its edges have a direction.
        unread: The attributes with the name of an own column.
    """

    def __init__(self, path: Path) -> None:
        self.directed: bool | None = None
        self.unread: dict[str, None] = {}
        self._path = path
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        # By the key of an attribute: its name, "" for one that is not read, whether it
        # is one of nodes, edges or all, and its default.
        self._names: dict[str, str] = {}
        self._owners: dict[str, str] = {}
        self._defaults: dict[str, str] = {}
        self._last_key = ""
        self._rows: dict[str, list[dict[str, str]]] = {"node": [], "edge": []}
        self._lines: dict[str, list[int]] = {"node": [], "edge": []}
        self._open: list[str] = []
        # The key of the value or the default whose text is being read.
        self._reading: str | None = None
        self._pieces: list[str] = []
        # How many elements are open around it.
        self._depth = 0

    def parse(self) -> None:
        """Reads the file."""
        try:
            with open(self._path, "rb") as stream:
                while piece := stream.read(_PIECE_BYTES):
                    self._parser.Parse(piece)
                self._parser.Parse(b"", True)
        except (expat.ExpatError, ValueError, LookupError) as error:
            # An encoding that expat or Python does not know is one of the latter.
            raise UserError(
                f"{self._path} is not well-formed GraphML ({error}); save it again"
            ) from error
        if self.directed is None:
            self._refuse("has no element graph", "save a graph as GraphML")

    def table(self, kind: str) -> Table:
        """The nodes or the edges, with a column for each attribute."""
        rows, own = self._rows[kind], _OWN_COLUMNS[kind]
        present = dict.fromkeys(name for row in rows for name in row)
        defaults = {
            self._names[key]: default
            for key, default in self._defaults.items()
            if default and self._owners[key] in (kind, "all")
        }
        columns = {}
        for name in (*own, *(name for name in present if name not in own)):
            default = defaults.get(name, "")
            values = [row.get(name, default) for row in rows]
            columns[name] = np.array(values, dtype=object)
        return Table(self._path, columns, np.array(self._lines[kind], dtype=np.int64))

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
            key = self._last_key = attributes.get("id", "")
            # The program yEd saves how it draws a node, which is no attribute of it.
            is_drawing = "yfiles.type" in attributes
            self._names[key] = "" if is_drawing else attributes.get("attr.name", key)
            self._owners[key] = attributes.get("for", "all")
            self._defaults[key] = ""
        elif element == "graph":
            if self.directed is not None:
                self._refuse("begins a second graph", "save one graph in a file")
            self.directed = attributes.get("edgedefault", "directed") == "directed"
        elif element in ("hyperedge", "locator"):
            self._refuse(f"has an element {element}", "save a plain graph")
        elif element in self._rows:
            self._add(element, attributes)
        elif element == "data" and inside in self._rows:
            self._reading, self._depth = attributes.get("key", ""), len(self._open) - 1
            if self._reading not in self._names:
                self._refuse(
                    f"has data of the key {self._reading!r}, which is not declared",
                    "save the graph again",
                )
        elif element == "default" and inside == "key":
            self._reading, self._depth = self._last_key, len(self._open) - 1
        if len(self._open) - 1 == self._depth:
            self._pieces = []

    def _add(self, kind: str, attributes: dict[str, str]) -> None:
        for name in _OWN_COLUMNS[kind]:
            if name not in attributes:
                self._refuse(f"has no {name} for this {kind}", f"give it a {name}")
        is_directed = "true" if self.directed else "false"
        if attributes.get("directed", is_directed) != is_directed:
            self._refuse(
                "has an edge whose direction differs from the graph's edgedefault",
                "make all edges directed, or none",
            )
        self._rows[kind].append({name: attributes[name] for name in _OWN_COLUMNS[kind]})
        self._lines[kind].append(self._parser.CurrentLineNumber)

    def _text(self, text: str) -> None:
        if self._reading is not None:
            self._pieces.append(text)

    def _end(self, _name: str) -> None:
        element = self._open.pop()
        if self._reading is None or len(self._open) != self._depth:
            return
        key, text = self._reading, "".join(self._pieces)
        self._reading, self._pieces = None, []
        if element == "default":
            self._defaults[key] = text
        elif self._names[key] in _OWN_COLUMNS[self._open[-1]]:
            self.unread[self._names[key]] = None
        elif self._names[key]:
            row, name = self._rows[self._open[-1]][-1], self._names[key]
            if name in row:
                self._refuse(
                    f"has a second value of {name}", "give each key its own attr.name"
                )
            row[name] = text
