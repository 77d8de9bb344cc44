"""Known items: things that stand in a repository once, typed as people type them; does the place come first?"""
