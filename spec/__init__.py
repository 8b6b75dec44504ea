"""The one source of truth for everything two languages must agree on, and its generator."""
