"""Both theorems in numbers, beyond their assumptions, and in real layers."""
