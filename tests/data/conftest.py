"""Settings the tests of the data share."""

import warnings

with warnings.catch_warnings():
    # PyG compiles parts of itself with torch.jit.script when it is first imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    import torch_geometric  # noqa: F401
