"""Suite files that ship with the package (TOML)."""
