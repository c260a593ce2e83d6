"""Trains one model on sampled batches by all processes that torchrun starts.

torchrun --standalone --nproc-per-node 2 examples/several_processes.py

Each process has its own GPU, or a part of the CPU's cores. Started with plain `python`,
it trains alone, to the same losses within rounding.
"""

import tempergat
from tempergat.training import Recipe, recipe_for

_, recipe = recipe_for("demo", None)
sampled = {"fanout": [10, 5], "batch_size": 64}
recipe = Recipe.model_validate(
    recipe.model_dump()
    | {"training": "sampled"}
    | {block: recipe.model_dump()[block] | sampled for block in ("attention", "gcn")}
)
# Process 0 alone writes to the folder `out`. A run that was stopped goes on from there.
model = tempergat.train(
    "demo",
    "temp_gated",
    recipe=recipe,
    epochs=5,
    out="tempergat-out/many",
)
print(f"test accuracy {100 * model.run.scores['best_val_accuracy'].test:.1f} %")
