"""Our habits, as a test: what one could forget and a reader would notice. `python -m habits` says
every place where one is broken; `make check` runs it.

- `crates`: which crates may depend on which
- `lengths`: of files and functions
- `bans`: calls and types that must not be used, each with its reason and its exceptions
- `words`: what the first line of a file says, and words that no file needs
- `settings`: every environment variable is declared once, and read through its declaration
- `deny`: deny.toml: licences, sources and crates that may not come in
- `rust`, `problem`: how Rust is read, and what is said

Exceptions are lists that may only shrink: one that is no longer needed is itself a problem.
"""
