"""The Slack app: questions that are asked in channels, and their answers."""
