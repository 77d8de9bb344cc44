"""GitLab: issues, merge requests and the wiki of a project."""
