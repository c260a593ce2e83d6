"""The paper's two theorems: closed forms, simulation, and checks of the proofs."""
