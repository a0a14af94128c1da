"""From event tables to a dependency graph."""
