"""Ways out by the network."""

from __future__ import annotations

from .base import a

NETWORK = [
    a("tcp_outside", "reach the internet", """
        def go():
            return socket.create_connection(("192.0.2.1", 80), timeout=2)
    """),
    a("metadata_service", "ask the cloud that this machine may run in for credentials", """
        def go():
            return socket.create_connection(("169.254.169.254", 80), timeout=2)
    """),
    a("tcp_host_loopback", "reach a service on this machine's loopback", """
        def go():
            return socket.create_connection(("127.0.0.1", PORT), timeout=2)
    """),
    a("tcp_host_loopback_v6", "the same over IPv6", """
        def go():
            return socket.create_connection(("::1", PORT), timeout=2)
    """),
    a("tcp_host_address", "reach a service at this machine's own address", """
        def go():
            must(ADDRESS, "this machine has no other address")
            return socket.create_connection((ADDRESS, PORT), timeout=2)
    """),
    a("udp_host", "send a datagram to this machine", """
        def go():
            sent = []
            for address in ("127.0.0.1", "127.0.0.53", ADDRESS or "127.0.0.1", "172.17.0.1", "10.0.2.2"):
                s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)
                try:
                    s.connect((address, 53)); s.send(b"x" * 12); s.recv(1); sent.append(address)
                except OSError as e: last = e
            must(sent, str(last))
            return sent
    """),
    a("dns", "look up a name", """
        def go():
            return socket.getaddrinfo("example.com", 80)
    """),
    a("udp_dns", "send a datagram out", """
        def go():
            return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53))
    """),
    a("multicast", "speak to the local network", """
        def go():
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            try: return s.sendto(b"x", ("255.255.255.255", 9))
            except OSError: return s.sendto(b"x", ("224.0.0.251", 5353))
    """),
    a("interfaces", "find a network interface beside loopback", """
        def go():
            names = [name for _, name in socket.if_nameindex()]
            must(set(names) - {"lo", "sit0", "tunl0", "ip6tnl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0"})
            return names
    """),
    a("add_address", "give an interface an address by netlink", """
        def go():
            s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
            body = struct.pack("BBBBi", socket.AF_INET, 8, 0, 0, 1) + struct.pack("HH4s", 8, 2, bytes([10, 9, 8, 7]))
            s.send(struct.pack("IHHII", 16 + len(body), 20, 1 | 4 | 0x400, 1, 0) + body)
            code = struct.unpack_from("i", s.recv(4096), 16)[0]
            must(code == 0, os.strerror(-code))
    """),
    a("add_interface", "make a network interface", """
        def go():
            s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
            name = struct.pack("HH8s", 12, 3, b"evil0")
            kind = struct.pack("HH", 16, 18) + struct.pack("HH8s", 9, 1, b"dummy")
            body = struct.pack("BBHiII", 0, 0, 0, 0, 0, 0) + name + kind
            s.send(struct.pack("IHHII", 16 + len(body), 16, 1 | 4 | 0x400 | 0x200, 1, 0) + body)
            code = struct.unpack_from("i", s.recv(4096), 16)[0]
            must(code == 0, os.strerror(-code))
    """),
    a("device_events", "hear this machine's device events", """
        def go():
            s = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 15)
            s.bind((0, 1)); s.settimeout(1)
            return s.recv(100)
    """),
    a("audit", "read or change this machine's audit", """
        def go():
            s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)
            s.send(struct.pack("IHHII", 16, 1000, 1 | 4, 1, 0)); s.settimeout(1)
            code = struct.unpack_from("i", s.recv(4096), 16)[0]
            must(code == 0, os.strerror(-code))
    """),
    a("tunnel", "make a network of its own", """
        def go():
            return os.open("/dev/net/tun", os.O_RDWR)
    """),
    a("abstract_socket", "reach an abstract Unix socket of this machine", """
        def go():
            s = socket.socket(socket.AF_UNIX); s.settimeout(2); s.connect("\\0" + ABSTRACT); return s
    """),
    a("abstract_sockets_listed", "find the names of this machine's Unix sockets", """
        def go():
            names = [line.split()[7] for line in open("/proc/net/unix").readlines()[1:] if len(line.split()) > 7]
            must(names)
            return names
    """),
    a("service_sockets", "reach a container daemon, display, bus or key agent of this machine", """
        def go():
            reached = []
            usual = ["/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
                     "/tmp/.X11-unix/X0", "/run/dbus/system_bus_socket", "/run/user/1000/bus", "/run/systemd/private"]
            for path in [*BAITS, *usual]:
                s = socket.socket(socket.AF_UNIX); s.settimeout(2)
                try: s.connect(path); reached.append(path)
                except OSError: pass
            must(reached)
            return reached
    """),
    a("unix_sockets", "find any socket of a service of this machine", """
        def go():
            found = []
            for path in files_below("/run", "/var", "/tmp", "/home", "/root", "/dev", "/mnt", "/opt", "/srv"):
                try:
                    if stat.S_ISSOCK(os.lstat(path).st_mode): found.append(path)
                except OSError: pass
            must(found)
            return found
    """),
    a("forged_sender", "claim to be another user on a Unix socket", """
        def go():
            one, two = socket.socketpair()
            two.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            one.sendmsg([b"x"], [(socket.SOL_SOCKET, 2, struct.pack("iII", 1, 0, 0))])
            return two.recvmsg(1, 100)
    """),
    a("raw_socket", "make a raw socket", """
        def go():
            return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    """),
    a("packet_socket", "make a packet socket", """
        def go():
            return socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    """),
    a("vsock", "make a socket to the virtual machine's host", """
        def go():
            return socket.socket(40, socket.SOCK_STREAM)
    """),
    a("alg_socket", "reach the kernel's ciphers", """
        def go():
            return socket.socket(38, socket.SOCK_SEQPACKET)
    """),
    a("rare_sockets", "reach rarely used protocols of the kernel", """
        def go():
            made = []
            for family in (3, 4, 5, 6, 9, 11, 12, 13, 15, 19, 20, 21, 23, 24, 26, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 39, 41, 42, 43, 44):
                for kind in (1, 2, 3, 5):
                    try: socket.socket(family, kind).close(); made.append((family, kind))
                    except OSError: pass
            must(made)
            return made
    """),
]  # fmt: skip
