"""What runs inside one sandbox of the test cloud: files and processes (envd) and the code interpreter.

``boot`` prepares the namespaces and runs ``__main__``, which serves both on a unix socket; the edge of
the cloud passes requests on to it, as a cloud's proxy does.
"""
