"""Studies of the paper's claims and of our own questions.

`python -m studies` lists them. They are run from a clone, and no part of the wheel.
"""
