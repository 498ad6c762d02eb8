"""The direct mode: a worker within the program, for hosts without pulse-worker."""
