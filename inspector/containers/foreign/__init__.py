"""Files that are no checkpoint and are taken for one: what each is, and the next step."""
