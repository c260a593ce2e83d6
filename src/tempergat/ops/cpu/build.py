"""Builds the CPU kernels in place: ``python -m tempergat.ops.cpu.build``.

For a checkout that is used without being installed, or an installation that found no
compiler. An ordinary installation builds the same files with CMake.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

from tempergat.base import UserError
from tempergat.ops.cpu.library import Library, library_path, open_library

FLAGS = (
    "-std=c++17",
    "-O3",
    "-fPIC",
    "-fno-math-errno",
    "-fvisibility=hidden",
    "-Wno-psabi",
)
ISA_FLAGS = {
    "generic": (),
    "avx2": ("-mavx2", "-mfma"),
    "avx512": ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma"),
}
KERNELS = (
    "gatv2_backward",
    "gat_backward",
    "dot_product_backward",
    "gatv2_forward",
    "gat_forward",
    "dot_product_forward",
    "aggregate",
)

# OpenMP is left to the process, so that torch's own threads are used.
_UNDEFINED = ("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ()
# Apple's clang has OpenMP, and no option of its own for it.
_OPENMP = [*(["-Xpreprocessor"] if sys.platform == "darwin" else []), "-fopenmp"]
_USES_OPENMP = """
extern "C" int count() {
  int sum = 0;
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : sum)
  for (int k = 0; k < 2; ++k) sum += k;
  return sum;
}
"""


def find_compiler() -> str | None:
    """The C++ compiler to use: $CXX, or the first of the usual names."""
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    return next((path for name in names if (path := shutil.which(name))), None)


def build(target: Path) -> None:
    """Compiles the kernels and puts the library at ``target``, or leaves it alone.

    Raises:
        UserError: If there is no compiler, it fails, or the folder cannot be written.
    """
    compiler = find_compiler()
    if compiler is None:
        raise UserError(
            "no C++ compiler found (looked for $CXX, c++, g++, clang++); install one, "
            "for example with `apt install g++`, and try again"
        )
    # Named like a library, so that what a killed build leaves behind is ignored as one.
    try:
        handle, beside = tempfile.mkstemp(dir=target.parent, suffix=target.suffix)
    except OSError as error:
        raise UserError(
            f"cannot write {target} ({error.strerror}); run this as a user who may, "
            f"or install tempergat into an environment of your own"
        ) from None
    os.close(handle)
    try:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(_compile(compiler, Path(folder), target.name), beside)
        os.replace(beside, target)
    finally:
        Path(beside).unlink(missing_ok=True)


def _compile(compiler: str, folder: Path, name: str) -> Path:
    sources = Path(__file__).parent / "csrc"
    # GCC keeps no wide vectors aligned on Windows' stack.
    x86 = os.name != "nt" and platform.machine().lower() in ("x86_64", "amd64")
    isas = list(ISA_FLAGS) if x86 else ["generic"]
    common = [compiler, *FLAGS, *_openmp(compiler, folder), "-c"]
    main = [*common, *(["-DTEMPERGAT_X86"] if x86 else [])]
    objects = [f"{folder}/library.o"]
    commands = [[*main, str(sources / "library.cpp"), "-o", *objects]]
    for kernel, isa in product(KERNELS, isas):
        made = f"{folder}/{kernel}_{isa}.o"
        parts = [f"-DTEMPERGAT_ISA={isa}", f"-DTEMPERGAT_KERNEL={kernel}"]
        flags = [*ISA_FLAGS[isa], *parts, str(sources / "kernels.cpp")]
        commands.append([*common, *flags, "-o", made])
        objects.append(made)
    cores = os.cpu_count() or 1
    print(
        f"compiling the CPU kernels: {len(commands)} files on {cores} cores, about "
        f"{max(1, round(7 / cores))} min",
        flush=True,
    )
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(_run, commands))
    library = folder / name
    _run([compiler, "-shared", *_UNDEFINED, *objects, "-o", str(library)])
    return library


def _openmp(compiler: str, folder: Path) -> list[str]:
    """The flags for OpenMP, if a library built with it can be loaded here.

    Not every compiler knows OpenMP, and what it compiles may need a runtime that is not
    there. Without it, the kernels use one thread.
    """
    # A library for Windows cannot leave OpenMP to the process.
    if os.name == "nt":
        return []
    source, library = folder / "openmp.cpp", folder / "openmp.so"
    source.write_text(_USES_OPENMP)
    command = [compiler, "-fPIC", *_OPENMP, "-c", str(source)]
    try:
        _run([*command, "-o", f"{folder}/openmp.o"])
        linked = ["-shared", *_UNDEFINED, f"{folder}/openmp.o", "-o", str(library)]
        _run([compiler, *linked])
        open_library(library)
    except (UserError, OSError):
        return []
    return _OPENMP


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
        said = done.stderr.strip()[-2000:] if done.returncode else None
    except OSError as error:
        said = str(error)
    if said is not None:
        raise UserError(
            f"`{' '.join(command)}` failed; set CXX to another compiler, or report "
            f"this: {said}"
        )


def _problem_of(path: Path) -> str | None:
    # Under its own name the system would give the older library that this process has
    # loaded.
    with tempfile.TemporaryDirectory() as folder:
        return Library(Path(shutil.copy(path, folder))).problem


def main() -> int:
    argparse.ArgumentParser(description=__doc__.partition(":")[0]).parse_args()
    path = library_path()
    try:
        build(path)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    problem = _problem_of(path)
    if problem is not None:
        print(f"built {path}, but it cannot be used: {problem}", file=sys.stderr)
        return 2
    print(f"built {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
