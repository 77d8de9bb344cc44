"""Known items: things that stand in a repository once, typed as people type them; and whether their place comes first."""
