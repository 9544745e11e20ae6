"""The program that runs inside a sandbox. Imports nothing of the rest.

``main.main`` is its entry. The host binds this folder into the sandbox as the package
``sandbox_guest`` and starts it with one end of a socket pair; see ``protocol`` for what is said there.
"""
