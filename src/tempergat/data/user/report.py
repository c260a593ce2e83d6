"""Reports what a user graph holds and what loading does with it."""

import csv
import io
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tempergat.base import UserError, listed
from tempergat.data.dataset import Dataset
from tempergat.data.description import describe_reading
from tempergat.data.feature_signal import feature_signal
from tempergat.data.tables.typed_folder import is_typed_folder
from tempergat.data.user.findings import SHOWN_FEATURES, Finding, findings_on
from tempergat.data.user.normalise import with_splits
from tempergat.data.user.open_graph import read_user_graph, short_name
from tempergat.data.user.options import ReadOptions, option_flag
from tempergat.data.user.reading import (
    NoLabels,
    OtherIds,
    OwnLabels,
    Question,
    Reading,
)

# How often options are changed to read on behind a problem.
_MOST_TRIES = 20
# A column that is rather the label than others, like Gephi's `Modularity Class`.
_CALLED_CLASS = re.compile(r".*(class|label|category|community)", re.IGNORECASE)


def check_graph(
    path: Path,
    options: ReadOptions | None = None,
    scale: bool = True,
    refuse: Callable[[Dataset], None] | None = None,
) -> list[Finding]:
    """Reports what a user graph holds, and how it is read.

    Args:
        path: A folder of tables, an `.npz` or a `.pt`.
        options: How it is read; the defaults when left out.
        scale: Whether columns of tables are scaled for training.
        refuse: Raises for a graph that cannot be trained on.

    Returns:
        The findings. If the graph cannot be used, one is about `compare` and says why.
        What is wrong is collected as far as options can settle it; the last finding
        is then a command with all of these options.

    Raises:
        UserError: The files cannot be read, or contradict themselves.
    """
    used = given = options or ReadOptions()
    problems: list[UserError] = []
    findings: list[Finding] = []
    for _ in range(_MOST_TRIES):
        errors, reported = _report(path, used, scale, refuse)
        findings = findings or reported
        problems += [error for error in errors if str(error) not in map(str, problems)]
        settled = _settle(used, errors)
        if settled == used:
            break
        used = settled
    if not problems:
        return findings
    if not findings and len(problems) == 1:
        raise problems[0]
    if len(problems) > 1 or used != given:
        findings += [Finding("problem", str(problem)) for problem in problems]
    findings.append(Finding("compare", "refuses the graph", str(problems[0])))
    if not errors:
        command = f"tempergat compare {shlex.quote(str(path))} {_as_command(used)}"
        findings.append(Finding("command", command))
    return findings


def _report(
    path: Path,
    options: ReadOptions,
    scale: bool,
    refuse: Callable[[Dataset], None] | None,
) -> tuple[list[UserError], list[Finding]]:
    """What is wrong with a graph that is read with these options, and the findings.

    There are no findings where the graph cannot be read at all.
    """
    reading = Reading(str(path), options, collect=True)
    findings: list[Finding] = []
    unlabelled: UserError | None = None
    choices: list[str] = []
    try:
        try:
            read = read_user_graph(path, reading)
        except (NoLabels, OwnLabels) as error:
            if isinstance(error, OwnLabels) and path.is_dir() and is_typed_folder(path):
                raise
            unlabelled = error
            reading = Reading(str(path), options, labelled=False, collect=True)
            read = read_user_graph(path, reading)
        if isinstance(unlabelled, OwnLabels):
            choices = [*filter(_CALLED_CLASS.fullmatch, read.feature_names or ())]
        findings = findings_on(read, reading)
        if not reading.errors and not isinstance(unlabelled, OwnLabels):
            graph = with_splits(read, reading)
            unsplit = replace(graph.unsplit, name=short_name(path))
            dataset = replace(graph, unsplit=unsplit).choose()
            if reading.labelled and refuse is not None:
                refuse(dataset)
            if reading.labelled and not read.mapped_hashes:
                findings += _measured(dataset, scale)
            return [], findings + _how_read(dataset, scale)
    except UserError as error:
        reading.errors.append(error)
    questions = [error for error in reading.errors if isinstance(error, Question)]
    words = [name for each in questions for name in each.options.get("one_hot", ())]
    choices = choices or [*filter(_CALLED_CLASS.fullmatch, words)] or words
    if unlabelled is not None and choices:
        # Of several columns of words the last is most often the label.
        return [Question(str(unlabelled), label=choices[-1])], []
    if isinstance(unlabelled, OwnLabels):
        return [unlabelled, *reading.errors], []
    return reading.errors, findings


def _measured(dataset: Dataset, scale: bool) -> list[Finding]:
    """Degrees, and how far apart the classes lie in the features."""
    if dataset.is_heterogeneous or "x" not in dataset.data:
        return []
    degree = dataset.data.num_edges / max(int(dataset.data.num_nodes), 1)
    signal = feature_signal(dataset, scale)
    of = f"variance between classes over within, {signal.nodes:,} training nodes"
    values = {
        "mean degree": (degree, "edges into a node, as the graph is read"),
        "signal to noise of features": (signal.own.signal_to_noise, of),
        "signal to noise of means over neighbours": (
            signal.neighbours.signal_to_noise,
            of,
        ),
        "share of features that differ by class": (
            signal.own.reliable_share,
            "F-tests, at most 5 % false discoveries",
        ),
        "share of the signal in their best tenth": (signal.own.top_tenth_share, ""),
    }
    return [
        Finding(name, None if value is None else round(value, 4), action)
        for name, (value, action) in values.items()
    ]


def _how_read(dataset: Dataset, scale: bool) -> list[Finding]:
    """What the files were taken for, scaled columns, and notes on reading the graph."""
    findings = [
        Finding(f"read: {subject.replace('_', ' ')}", what)
        for subject, what in describe_reading(dataset).items()
        if subject != "scaled"
    ]
    columns = dataset.scaled_columns if scale else {}
    scaled = [
        f"{name} (mean {mean:.6g}, deviation {deviation:.6g})"
        for name, (mean, deviation) in columns.items()
    ]
    if scaled:
        action = (
            "centred and divided by their deviation for training; not with --no-scale"
        )
        shown = listed(scaled, SHOWN_FEATURES)
        findings.append(Finding("scaled columns", shown, action))
    return findings + [Finding("note", note) for note in dataset.notes]


def _settle(options: ReadOptions, errors: Sequence[UserError]) -> ReadOptions:
    """The options with those that settle some problems."""
    needs_ids = any(isinstance(error, OtherIds) for error in errors)
    for error in errors:
        changes = dict(error.options) if isinstance(error, Question) else {}
        if {"drop", "id"} <= changes.keys():
            # A column that differs in every row names the nodes, or nothing.
            changes.pop("drop" if needs_ids and options.id is None else "id")
        for name in {"drop", "one_hot"} & changes.keys():
            changes[name] = (*getattr(options, name), *changes[name])
            changes[name] = tuple(dict.fromkeys(changes[name]))
        options = replace(options, **changes)
    roles = (options.id, options.label, options.split_column)
    return replace(options, drop=tuple(n for n in options.drop if n not in roles))


def _as_command(options: ReadOptions) -> str:
    """The options as they are typed in a shell."""
    words = []
    for name in options.given():
        value = getattr(options, name)
        if name == "directed":
            words.append("--directed" if value else "--undirected")
        elif value is True:
            words.append(option_flag(name))
        else:
            text = _as_list(value) if isinstance(value, tuple) else value
            words.append(f"{option_flag(name)} {shlex.quote(text)}")
    return " ".join(words)


def _as_list(names: Sequence[str]) -> str:
    """Names with commas between them; quotes hold one that has a comma itself."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()
