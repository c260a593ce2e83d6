"""What the rows show, and the page that says it."""
