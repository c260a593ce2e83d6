"""Builds the CPU kernels in place: ``python -m tempergat.ops.build``.

For a checkout that is used without being installed, or an installation that found no
compiler. An ordinary installation builds the same files with CMake.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tempergat.errors import UserError

FLAGS = (
    "-std=c++17",
    "-O3",
    "-fPIC",
    # Apple's compiler knows no OpenMP; there the kernels use one thread.
    *(() if sys.platform == "darwin" else ("-fopenmp",)),
    "-fno-math-errno",
    "-fvisibility=hidden",
    "-Wno-psabi",
)
ISA_FLAGS = {
    "generic": (),
    "avx2": ("-mavx2", "-mfma"),
    "avx512": ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma"),
}


def find_compiler() -> str | None:
    """The C++ compiler to use: $CXX, or the first of the usual names."""
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    return next(
        (found for name in names if name and (found := shutil.which(name))), None
    )


def build(target: Path) -> None:
    """Compiles the kernels and puts the library at ``target``, or leaves it alone.

    Raises:
        UserError: If there is no compiler, or it fails.
    """
    compiler = find_compiler()
    if compiler is None:
        raise UserError(
            "no C++ compiler found (looked for $CXX, c++, g++, clang++); install one, "
            "for example with `apt install g++`, and try again"
        )
    sources = Path(__file__).parent
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    isas = list(ISA_FLAGS) if x86 else ["generic"]
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        common = [compiler, *FLAGS, "-c"]
        main = [*common, *(["-DTEMPERGAT_X86"] if x86 else [])]
        commands = [[*main, str(sources / "cpu.cpp"), "-o", f"{folder}/cpu.o"]]
        for isa in isas:
            flags = [*ISA_FLAGS[isa], f"-DTEMPERGAT_ISA={isa}"]
            source = str(sources / "cpu_kernels.cpp")
            commands.append([*common, *flags, source, "-o", f"{folder}/{isa}.o"])
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(_run, commands))
        # OpenMP is left to the process, so that torch's own threads are used.
        undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
        objects = [f"{folder}/{name}.o" for name in ("cpu", *isas)]
        library = f"{folder}/{target.name}"
        _run([compiler, "-shared", *undefined, *objects, "-o", library])
        os.replace(library, target)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise UserError(
            f"`{' '.join(command)}` failed; set CXX to another compiler, or report "
            f"this: {done.stderr.strip()[-2000:]}"
        )


def main() -> int:
    from tempergat.ops.cpu import library_path

    try:
        build(library_path())
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"built {library_path()}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
