"""Tables, figures and Markdown of results."""
