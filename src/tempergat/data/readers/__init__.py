"""One reader per published dataset layout."""
