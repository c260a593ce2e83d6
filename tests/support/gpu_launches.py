"""Notes what programs launch in Triton's interpreter; to be imported before kernels."""

from typing import Any

from tempergat.ops.gpu.launching import launch as launching

_launch, _launched = launching.launch, set()


def _note(kernel: Any, grid: Any, tensors: Any, *rest: Any, **options: Any) -> None:
    if all(grid):
        types = [None if x is None else x.dtype for x in tensors]
        _launched.add(Launch(kernel, tuple(types), *rest, **options).features)
    _launch(kernel, grid, tensors, *rest, **options)


launching.launch = _note

from tests.support.gpu_forms import Launch, forms  # noqa: E402

_checked = {form.features for form in forms().values()}
_launched.clear()


def assert_all_are_checked() -> None:
    """Asserts that `make check-gpu` compiles all that was launched."""
    missing = sorted(map(str, _launched - _checked))
    assert not missing, f"give tests/support/gpu_forms.py a call with {missing}"
