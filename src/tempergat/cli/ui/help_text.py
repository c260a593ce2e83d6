"""The examples at the end of a command's help."""


def examples(*commands: str) -> str:
    """Examples as the last part of a help page.

    Args:
        *commands: What a user may type, one command each.
    """
    # Typer joins and wraps lines unless a paragraph starts with this character.
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])
