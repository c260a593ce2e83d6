"""Builds the package with scikit-build-core, with or without the CPU kernels.

Metadata need no compiler, and where the kernels cannot be compiled the package is built
without them: layers then run on plain PyTorch.
"""

import os
import sys

from scikit_build_core import build
from scikit_build_core.build import *  # noqa: F403

_SKIP = "SKBUILD_WHEEL_CMAKE"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel, as PEP 517 says."""
    places = wheel_directory, metadata_directory
    return _with_or_without_kernels(build.build_wheel, config_settings, *places)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel of an editable installation, as PEP 660 says."""
    places = wheel_directory, metadata_directory
    return _with_or_without_kernels(build.build_editable, config_settings, *places)


def _with_or_without_kernels(make, settings, directory, metadata_directory):
    if os.environ.get(_SKIP, "").lower() not in ("0", "false", "off", "no"):
        _say(
            "compiling the CPU kernels takes about five minutes of one core, spread "
            f"over all cores; {_SKIP}=false leaves them out"
        )
    try:
        return make(directory, settings, metadata_directory)
    except (Exception, SystemExit) as error:
        _say(f"the CPU kernels could not be compiled ({error}); going on without them")
    without = {**(settings or {}), "wheel.cmake": "false"}
    # The wheel has another tag than the metadata that were asked for before.
    return make(directory, without, None)


def _say(line):
    print(f"tempergat: {line}", file=sys.stderr, flush=True)
