"""An E2B-compatible cloud on loopback, for tests with the real client. Ours; nothing of E2B's servers is in it.

How to use it::

    from support.e2b_server import Cloud

    with Cloud() as cloud:
        settings = Settings(data_dir=…, **cloud.settings())   # for the program
        sandbox = Sandbox.create(**cloud.client())            # for the real client directly
        cloud.sandboxes                                       # live ones: id -> Record
        cloud.requests                                        # (method, path, status) of every request
        cloud.fail("create", 503, times=None); cloud.heal()   # faults on demand, see Cloud.fail
        cloud.vanish(id)                                      # ended behind the client's back
        cloud.advance(300)                                    # time passes: what expires is gone afterwards

or as a fixture ``cloud`` that also checks that no sandbox is left and that the server itself had no error
(``from support.e2b_server.fixtures import cloud_fixture  # noqa: F401``). Options of ``Cloud``:

* ``api="v1"``: only ``/sandboxes``; ``/v2/…`` answers 405, as older servers do.
* ``charts=False``: kernels show no pictures of their own accord (only files, as on Alibaba FC).
* ``quirks=False``: without the hang of code that is sent within half a second after a client has left.
* ``gateway_limit=2.0``: calls into a sandbox that take longer are cut with a gateway's 502 page. (Such a
  gateway holds the answer back until it is whole, so nothing is streamed.)
* ``hosts=True``: ``settings()`` names a proxy node (``cube_proxy_node_ip``) instead of ``e2b_sandbox_url``.
  Both ways of finding a sandbox always work: headers, and the host's name ``<port>-<id>.<domain>``.
* ``death_delay``: seconds until a dead kernel is told (the real server takes 2.7).
* ``templates``, ``unknown_template``: which templates there are, and the status for any other.
* ``memory``: bytes that each process of a sandbox may allocate (0: no limit).
* ``mcp=True``: there is a template ``mcp-gateway`` with the program of that name, which really runs MCP servers
  (``create(mcp=…)``). It listens at a port of this machine, and is reached at port 50005 of its sandbox. Needs ``isolated``.
* ``servers``: a folder of installed packages (``site-packages``) whose programs are on that program's path.
* ``query=False``: lists pass over what they are asked for, and give all sandboxes.
* ``prestart=0``: prepares no sandbox in advance (for tests that make none).

How it is built: ``Cloud`` runs the control API and an edge in a thread of its own, on two ports. A sandbox is a
process tree (``guest/``) with files, commands and the code interpreter on real ipykernels, which listens on a
unix socket; the edge passes requests on. In mount and pid namespaces of its own (as root, or with user
namespaces) it has a private, empty /tmp and /home, which files, commands and code see alike. Where namespaces
are refused (``cloud.isolated`` is False) sandboxes share the host's /tmp, and the home folder is a temporary one.
It is a double of a cloud, not a jail: code in it can do what the test can.

Left out: watching folders, pseudo-terminals, snapshots, networks, volumes, metrics (always empty), languages
other than Python, the ``chart`` and ``data`` fields of results, users (everything runs as the one who tests).
"""

from __future__ import annotations

from .cloud import Cloud
from .record import Record

__all__ = ["Cloud", "Record"]
