"""Packages the engine as an IP: sources, wrappers, firmware, and what tools of others read. See docs/rtl/ip.md."""
