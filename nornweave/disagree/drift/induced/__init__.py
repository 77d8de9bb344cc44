"""The notation of a repository, learned from the values on which its pages and its code agree."""
