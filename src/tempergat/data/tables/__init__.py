"""Folders of tables: CSV or Parquet files of nodes, edges and splits."""
