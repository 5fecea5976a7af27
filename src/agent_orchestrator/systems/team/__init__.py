"""Teams: a project manager plans groups of tasks; developers, QA and a tech lead bring each to the target branch."""
