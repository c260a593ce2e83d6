"""The compiled sampling kernels give the reference's batches on a GPU."""

import pytest

pytest.importorskip("triton")

from tests.support.gpu_sampling import (
    CASES,
    check_layers,
    check_many_samples,
    check_padded_layers,
    check_sample,
    check_typed_sample,
)

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_gpu_samples_as_the_reference(case: str, replace: bool) -> None:
    check_sample(CASES[case], replace, "cuda")


@pytest.mark.parametrize("case", ["three hops", "most nodes isolated", "hub"])
def test_a_gpu_samples_many_batches_as_the_reference(case: str) -> None:
    check_many_samples(CASES[case])


def test_a_gpu_samples_typed_graphs_as_the_reference() -> None:
    check_typed_sample("cuda")


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_gpu_groups_a_batch_for_every_layer(case: str, self_loops: bool) -> None:
    check_layers(CASES[case], self_loops, "cuda")
    check_padded_layers(CASES[case], self_loops, "cuda")
