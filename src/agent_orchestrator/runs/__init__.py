"""Runs, as every surface asks for them: started from options, taken up again, looked at, deleted. A folder per system."""
