"""Kernels compile without a GPU on the machine."""

import pytest

pytest.importorskip("triton")


@pytest.mark.parametrize("storage", ["fp32", "bf16", "fp16", "fp64"])
def test_sparse_products_compile_for_every_type_of_features(storage: str) -> None:
    import triton
    from triton.backends.compiler import GPUTarget

    from tempergat.ops.gpu.features.aggregate import _aggregate_kernel as kernel

    work = "fp64" if storage == "fp64" else "fp32"
    pointers = {"x_ptr": storage, "out_ptr": storage, "part_ptr": work}
    pointers |= dict.fromkeys(("items_ptr", "other_ptr", "position_ptr"), "i32")
    pointers["used_ptr"] = "i8"
    signature = {
        name: f"*{pointers.get(name, storage)}" if name.endswith("ptr") else "constexpr"
        for name in kernel.arg_names
    } | dict.fromkeys(("sets", "channels", "stored", "num_items"), "i32")
    constants = {
        "BLOCK_E": 8,
        "BLOCK_W": 64,
        "ITEMS": 8,
        "EXACT": True,
        "IN_ORDER": False,
        "SKIP": True,
    }
    source = triton.compiler.ASTSource(kernel, signature, constants)
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    assert "st.global" in compiled.asm["ptx"]
