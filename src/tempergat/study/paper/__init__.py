"""The paper's published numbers beside ours."""
