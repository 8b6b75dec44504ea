"""Routes for networks whose nodes forward messages themselves, as in SMI: tables, and the proof that no circle waits.

`topology` reads and generates cables, `schemes` make tables, `proof` walks tables and looks for circles, `smi_files`
and `own_files` write and read them. docs/routing.md is the page for users.
"""
