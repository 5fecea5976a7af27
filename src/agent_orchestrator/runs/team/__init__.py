"""Teams: from requirements and flags to a team at work."""
