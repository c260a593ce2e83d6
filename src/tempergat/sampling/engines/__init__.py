"""What a sampled batch is, and the engines that make it: torch, C++ and GPU."""
