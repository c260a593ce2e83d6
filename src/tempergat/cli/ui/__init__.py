"""What the commands show: graphs, progress, tables, JSON, and how they end."""
