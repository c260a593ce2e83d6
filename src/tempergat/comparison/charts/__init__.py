"""The figures of a report, each drawn as SVG text."""
