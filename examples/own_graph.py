# %% [markdown]
# # From my files to a report
#
# A graph is a folder with two tables: `nodes.csv` with the features and the label of
# every node, `edges.csv` with the two ends of every edge. Here we write such a folder;
# yours is already there.

# %%
import csv
import tempfile
from pathlib import Path

import tempergat
from tempergat.data import csbm

made_up = csbm(n=400).data
folder = Path(tempfile.mkdtemp()) / "shops"
folder.mkdir()
with (folder / "nodes.csv").open("w", newline="") as file:
    table = csv.writer(file)
    table.writerow(
        ["id", *(f"sales_{n}" for n in range(made_up.num_features)), "label"]
    )
    for node, (features, label) in enumerate(zip(made_up.x, made_up.y, strict=True)):
        word = "closes" if label else "stays"
        table.writerow([node, *(f"{value:.4f}" for value in features), word])
with (folder / "edges.csv").open("w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["source", "target"])
    table.writerows(made_up.edge_index.t().tolist())

# %% [markdown]
# `load` reads it, checks it and makes a split. `tempergat data check shops` prints all
# that was found.

# %%
graph = tempergat.load(folder)
graph

# %% [markdown]
# Every method is trained with the same seeds, so that differences are tested over
# pairs. Three runs of 30 epochs are few: the table says how sure it is. In a notebook
# the last line shows the table with every run.

# %%
comparison = tempergat.compare(
    folder,
    ["mlp", "gcn", "gat", "temp_gated"],
    runs=3,
    epochs=30,
    progress=False,
)
print(comparison)
comparison

# %% [markdown]
# The report is one file for any browser: answer, tables, learning curves, costs, and
# what is needed to repeat it.

# %%
report = comparison.to_report(folder.parent / "report.html")
print(f"{report.name}: {report.stat().st_size / 1000:.0f} kB")

# %% [markdown]
# The best method, trained once and used on the graph:

# %%
model = tempergat.train(folder, comparison.best, epochs=30, progress=False)
predicted = model.predict(folder)
print([model.class_names[number] for number in predicted[:5]])
model
