"""Notes of the vault as files: read, compared, replaced; what they mean is in the domain."""
