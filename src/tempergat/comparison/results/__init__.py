"""What runs show: one graph or several, in tables, notes and words."""
