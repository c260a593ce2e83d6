"""Compiles every GPU kernel for cards that are not here: `make check-gpu`.

    python -m tools.check_gpu [--write | --quick] [TARGET ...]

It fails where a kernel does not compile or does not fit a card, and where it needs more
than `benchmarks/results/gpu_kernels.csv` says. --write writes that table; --quick takes
one form of each kernel with each combination of types.
"""

import csv
import os
import re
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

TABLE = Path(__file__).parents[1] / "benchmarks" / "results" / "gpu_kernels.csv"
# Instructions may grow by so much without being a fault.
GROWTH = 1.1
# Reading and writing global memory, as `read_cubin` has them.
_LOAD, _STORE = 0x181, 0x186
# Records of a cubin's section `.nv.info`: a head, which kernel, and the number.
_REGISTERS, _STACK = (rb"\x04%c\x08\0.{4}(.{4})" % fact for fact in b"\x2f\x11")


class Target(NamedTuple):
    """A kind of card, and what a multiprocessor of it has.

    Attributes:
        backend: The backend of Triton.
        arch: What it calls the kind.
        lanes: The lanes of a warp.
        cache: Bytes of the second-level cache, on which tiles depend.
        registers: Registers for each lane, over all warps.
        step: In what steps a warp gets them.
        warps: The most warps.
        shared: Bytes of shared memory.
        own_shared: The most that one program gets.
    """

    backend: str
    arch: int | str
    lanes: int
    cache: int
    registers: int
    step: int
    warps: int
    shared: int
    own_shared: int

    def programs(self, needs: "Needs") -> int:
        """How many programs a multiprocessor runs at once: the occupancy."""
        registers = -(-max(needs.registers, 1) // self.step) * self.step
        return min(
            self.warps // needs.warps,
            self.registers // registers // needs.warps,
            self.shared // max(needs.shared, 1),
        )


_MB, _KB = 2**20, 2**10
TARGETS = {
    "sm_75": Target("cuda", 75, 32, 4 * _MB, 2048, 8, 32, 64 * _KB, 64 * _KB),
    "sm_80": Target("cuda", 80, 32, 40 * _MB, 2048, 8, 64, 164 * _KB, 163 * _KB),
    "sm_90": Target("cuda", 90, 32, 50 * _MB, 2048, 8, 64, 228 * _KB, 227 * _KB),
    "sm_100": Target("cuda", 100, 32, 126 * _MB, 2048, 8, 64, 228 * _KB, 227 * _KB),
    "sm_120": Target("cuda", 120, 32, 96 * _MB, 2048, 8, 48, 100 * _KB, 99 * _KB),
    "gfx90a": Target("hip", "gfx90a", 64, 8 * _MB, 2048, 8, 32, 64 * _KB, 64 * _KB),
    "gfx942": Target("hip", "gfx942", 64, 4 * _MB, 2048, 8, 32, 64 * _KB, 64 * _KB),
    "gfx1100": Target("hip", "gfx1100", 32, 6 * _MB, 3072, 24, 32, 64 * _KB, 64 * _KB),
}


class Needs(NamedTuple):
    """What a compiled kernel needs: warps of a program, bytes, and counts."""

    warps: int
    registers: int
    stack: int
    shared: int
    instructions: int
    loads: int
    stores: int


# Kernel, form and target.
Key = tuple[str, str, str]


def compile_all(name: str, quick: bool) -> dict[Key, Any]:
    """All kernels for a target, compiled; in words, why a kernel does not compile."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    from tempergat.ops.gpu.launching.launch import compile_kernel
    from tests.support.gpu_forms import forms

    target = TARGETS[name]
    kind = GPUTarget(target.backend, target.arch, target.lanes)
    # What Triton asks of a driver to compile; each target is a device of its own.
    number = list(TARGETS).index(name)
    driver.set_active(
        SimpleNamespace(
            get_current_device=lambda: number,
            get_current_stream=lambda device: 0,
            get_current_target=lambda: kind,
        )
    )

    def build(launch: Any) -> Any:
        try:
            return compile_kernel(*launch)
        except Exception as error:
            cause = error.__cause__ or error
            lines = [x.strip() for x in f"{cause}".splitlines() if x.strip(" ^")]
            return f"does not compile: {lines[-1] if lines else repr(cause)}"

    wanted = forms(target.cache, quick)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        built = threads.map(build, wanted.values())
        return {(*key, name): x for key, x in zip(wanted, built, strict=True)}


def needs_of(compiled: Any) -> Needs:
    """What a compiled kernel needs, read from its machine code."""
    warps, shared = compiled.metadata.num_warps, compiled.metadata.shared
    if "cubin" in compiled.asm:
        registers, stack, codes = read_cubin(compiled.asm["cubin"])
        counts = (len(codes), codes.count(_LOAD), codes.count(_STORE))
        return Needs(warps, registers, stack, shared, *counts)
    text = compiled.asm["amdgcn"]
    code = re.findall(r"^\t([a-z]+_\w+)", text, re.MULTILINE)
    registers, stack, own_shared = (
        int(re.findall(rf"\.{fact}:\s+(\d+)", text)[-1])
        for fact in (
            "vgpr_count",
            "private_segment_fixed_size",
            "group_segment_fixed_size",
        )
    )
    loads, stores = (
        sum(bool(re.match(f"(global|buffer|flat)_{way}", x)) for x in code)
        for way in ("load", "store")
    )
    shared = max(shared, own_shared)
    return Needs(warps, registers, stack, shared, len(code), loads, stores)


def read_cubin(cubin: bytes) -> tuple[int, int, list[int]]:
    """Registers, stack, and the operation of each instruction.

    An instruction has 16 bytes since compute capability 7.0, and its lowest 9 bits say
    what it does. NVIDIA's disassembler takes 0.2 s for each kernel.
    """
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [
        struct.unpack_from("<I20xQQ", cubin, start + k * size) for k in range(count)
    ]
    sections = {
        cubin[headers[names][1] + name :].split(b"\0", 1)[0]: cubin[at : at + length]
        for name, at, length in headers
    }
    (code,) = (x for name, x in sections.items() if name.startswith(b".text."))
    codes = [word & 0x1FF for word in struct.unpack(f"<{len(code) // 8}Q", code)[::2]]
    registers, stack = (
        int.from_bytes(re.findall(fact, sections[b".nv.info"], re.DOTALL)[0], "little")
        for fact in (_REGISTERS, _STACK)
    )
    return registers, stack, codes


def read_table() -> tuple[dict[Key, Needs], str]:
    """The table, and the version of Triton that it was made with."""
    with TABLE.open(newline="") as file:
        _, *rows = csv.reader(file)
    table = {
        (kernel, form, target): Needs(*map(int, needs))
        for kernel, form, target, *needs, _ in rows
    }
    return table, rows[0][-1]


def write_table(table: dict[Key, Needs], version: str) -> None:
    """Writes the table, in order."""
    with TABLE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kernel", "form", "target", *Needs._fields, "triton"])
        for key, needs in sorted(table.items()):
            writer.writerow([*key, *needs, version])


def faults_of(target: Target, needs: Needs, before: Needs | None) -> list[str]:
    """What is wrong with a kernel.

    Args:
        target: The kind of card.
        needs: What the kernel needs.
        before: What it needed by the table; None if nothing is to be compared.
    """
    if needs.shared > target.own_shared:
        return [
            f"{needs.shared} bytes of shared memory, a program gets {target.own_shared}"
        ]
    if before is None:
        return []
    found = []
    now, then = target.programs(needs), target.programs(before)
    if now < then:
        found.append(f"a multiprocessor runs {now} programs at once, not {then}")
    if needs.stack > 0 and before.stack == 0:
        found.append(f"{needs.stack} bytes of stack: registers are spilled")
    if needs.instructions > GROWTH * before.instructions:
        found.append(f"{needs.instructions} instructions, not {before.instructions}")
    return found


def check(
    name: str, table: dict[Key, Needs] | None, quick: bool
) -> tuple[dict[Key, Needs], list[str]]:
    """What the kernels need on a target, and what is wrong with them.

    Args:
        name: The target.
        table: What they needed before; None if nothing is to be compared.
        quick: Whether one form with each combination of types is enough.
    """
    compiled = compile_all(name, quick)
    faults = [(key, x) for key, x in compiled.items() if type(x) is str]
    needs = {key: needs_of(x) for key, x in compiled.items() if type(x) is not str}
    for key, found in needs.items():
        before = None if table is None else table.get(key)
        faults += [(key, x) for x in faults_of(TARGETS[name], found, before)]
        if table is not None and before is None:
            faults.append((key, "not in the table"))
    if table is not None and not quick:
        known = {key for key in table if key[2] == name}
        faults += [(key, "in the table alone") for key in known - compiled.keys()]
    return needs, [f"{' '.join(key)}: {fault}" for key, fault in sorted(faults)]


def main(arguments: list[str]) -> int:
    """Checks the targets, all of them unless some are given; prints a line for each."""
    if find_spec("triton") is None:
        print("not checked: triton is not installed")
        return 0
    import triton

    version = triton.__version__
    write, quick = "--write" in arguments, "--quick" in arguments
    names = [x for x in arguments if not x.startswith("--")]
    table, made_with = read_table() if TABLE.exists() else ({}, version)
    # Another version makes other code.
    before = table if made_with == version and not write else None
    failed = False
    for name in names or TARGETS:
        began = time.monotonic()
        needs, faults = check(name, before, quick)
        seconds = time.monotonic() - began
        compared = "" if before is None else " and compared with the table"
        print(
            f"{name}: {len(needs)} kernels compiled by triton {version}{compared} "
            f"in {seconds:.0f} s; {len(faults)} faults",
            flush=True,
        )
        print(*[f"  {fault}\n" for fault in faults], sep="", end="", flush=True)
        failed = failed or bool(faults)
        table = {key: x for key, x in table.items() if key[2] != name} | needs
    if write:
        write_table(table, version)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
