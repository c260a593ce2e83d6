"""Joining a Ray cluster, refused within seconds where there is none.

Ray itself would wait for minutes.
"""

import os
import signal
import socket
import tempfile
import warnings
from pathlib import Path
from typing import Any

from tempergat.base import UserError, first_line

CONNECT_TIMEOUT_S = 10.0


def connect(ray: Any, address: str) -> tuple[str, int] | None:
    """Connect to a cluster, waiting for a few seconds at most.

    Returns:
        Where its head listens; None where Ray alone knows.
    """
    where = _known_address() if address == "auto" else address
    head = None if where is None else _listener(ray, where, address)
    # Ray replaces the handler, and the command could not say how to continue.
    before = signal.getsignal(signal.SIGTERM)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(address=address, log_to_driver=False, logging_level="critical")
    except (ConnectionError, RuntimeError, ValueError) as error:
        if address == "auto":
            raise UserError(
                "no Ray cluster runs on this machine; start one with `ray start "
                "--head`, or give its address as HOST:PORT"
            ) from error
        raise UserError(
            f"cannot use the Ray cluster at {address}: {first_line(error)}"
        ) from error
    finally:
        signal.signal(signal.SIGTERM, before)
    return head


def _known_address() -> str | None:
    """The address that `auto` stands for, where it was written down."""
    given = os.environ.get("RAY_ADDRESS")
    if given:
        return given
    folder = Path(os.environ.get("RAY_TMPDIR", tempfile.gettempdir()))
    try:
        return (folder / "ray" / "ray_current_cluster").read_text().strip() or None
    except OSError:
        return None


def _listener(ray: Any, where: str, address: str) -> tuple[str, int]:
    """Refuse an address where nothing answers; Ray itself would wait for minutes."""
    host, _, port = where.removeprefix("ray://").rpartition(":")
    # The largest port is 65535.
    if not host or not port.isdecimal() or not 0 < int(port[:6]) < 2**16:
        raise UserError(
            f"the Ray address is {where!r}; give auto or HOST:PORT, like 10.0.0.1:6379"
        )
    if host == "localhost" or host.startswith("127."):
        # Ray goes to the machine's other address, which a cluster listens on.
        host = ray.util.get_node_ip_address()
    try:
        with socket.create_connection((host, int(port)), CONNECT_TIMEOUT_S) as peer:
            is_ray = _speaks_http2(peer)
    except OSError as error:
        which = "" if where == address else f" (that is what {address} stands for)"
        raise UserError(
            f"nothing answers at the Ray address {where}{which}: "
            f"{error.strerror or 'no answer'}; start a cluster with `ray start --head` "
            "and give the address it prints"
        ) from error
    if not is_ray:
        raise UserError(
            f"what answers at {where} is not a Ray cluster; give the address that "
            "`ray start --head` prints"
        )
    return host, int(port)


def _speaks_http2(peer: socket.socket) -> bool:
    """Whether the other side answers in the protocol that Ray's servers speak."""
    if os.environ.get("RAY_USE_TLS", "0") not in ("", "0"):
        # It would have to be encrypted.
        return True
    # The opening of HTTP/2 with empty settings. The answer opens with settings too.
    peer.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, *[0] * 5)))
    answer = b""
    while len(answer) < 4 and (more := peer.recv(16)):
        answer += more
    return answer[3:4] == b"\x04"
