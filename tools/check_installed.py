"""Checks that an installed tempergat works: `python check_installed.py kernels|plain`.

A layer runs forward and backward and agrees with PyG's; `kernels` or `plain` says
whether the installation has the CPU kernels. It needs nothing but the package.
"""

import argparse
import sys
import warnings
from importlib import metadata

import torch
import torch_geometric.nn as pyg

from tempergat import nn
from tempergat.ops.cpu.library import library


def main() -> None:
    """Ends with a line that says what was checked, or what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("expected", choices=["kernels", "plain"])
    expected = parser.parse_args().expected
    if (library.problem is None) != (expected == "kernels"):
        sys.exit(f"expected {expected}; the library: {library.problem or 'is there'}")
    warnings.filterwarnings("ignore", "tempergat has no CPU kernels")
    x, edge_index = torch.randn(200, 16), torch.randint(200, (2, 2000))
    theirs, ours = pyg.GATv2Conv(16, 8, heads=4), nn.GATv2Conv(16, 8, heads=4)
    ours.load_state_dict(theirs.state_dict())
    layers = theirs, ours, nn.TemperGATv2Conv(16, 8, heads=4)
    outputs = [layer(x, edge_index) for layer in layers]
    torch.stack(outputs).square().sum().backward()
    torch.testing.assert_close(outputs[1], outputs[0])
    for name, weight in ours.named_parameters():
        expected_gradient = theirs.get_parameter(name).grad
        torch.testing.assert_close(weight.grad, expected_gradient, rtol=1e-3, atol=1e-3)
    assert all(weight.grad is not None for weight in layers[2].parameters())
    versions = [f"{name} {metadata.version(name)}" for name in ("tempergat", "torch")]
    how = "with the CPU kernels" if expected == "kernels" else "on plain PyTorch"
    print(f"{', '.join(versions)}: layers run {how}")


if __name__ == "__main__":
    main()
