"""Files and directories by name: putting, getting, opening, listing, moving, removing."""
