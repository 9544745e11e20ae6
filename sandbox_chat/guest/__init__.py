"""The program that runs inside a sandbox. Imports nothing of the rest."""
