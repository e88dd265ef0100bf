"""One module a family of commands; each builds its document first and then prints it."""
