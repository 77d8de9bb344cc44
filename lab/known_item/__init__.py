"""Known items: what stands in a repository once, typed as people type it, and whether its place comes first."""
