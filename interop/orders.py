"""Weir's exchange and gateway beside Nasdaq's own SoupBinTCP library (nasdaq-protocols on PyPI).

`client` logs in with the library, places orders, drops the connection half-way, resumes by sequence number, and ends
with the message list the other side has. `server` is an exchange on the library that a gateway logs in to. OUCH 5.0
messages are packed here from the field offsets of the specification: a separate implementation, on purpose.

Run by `cargo xtask interop`.
"""

import argparse
import asyncio
import struct
import sys
import time

from nasdaq_protocols import soup

ENTER = struct.Struct(">cIcI8sQccccc14sH")
ACCEPTED = struct.Struct(">cQIcI8sQccQcccc14sH")
QUERY_ANSWER = struct.Struct(">cQI")

PATIENCE_SECONDS = 60
IN_FLIGHT_MAX = 200


def enter(number: int) -> bytes:
    """An order to buy; its price and quantity follow from its number, so that the answer can be checked."""
    return ENTER.pack(b"O", number, b"B", 1 + number % 1000, b"WEIR    ", 10_000 + number % 5000 * 100, b"0", b"Y",
                      b"A", b"N", b"N", b"P%013d" % number, 0)


def check_accepted(message: bytes, number: int) -> None:
    """Raises unless this is the acceptance of that order, field by field."""
    fields = ACCEPTED.unpack(message)
    kind, _, user_ref_num, side, quantity, symbol, price = fields[:7]
    state, client_order_id = fields[13], fields[14]
    wanted = (b"A", number, b"B", 1 + number % 1000, b"WEIR    ", 10_000 + number % 5000 * 100, b"L", b"P%013d" % number)
    found = (kind, user_ref_num, side, quantity, symbol, price, state, client_order_id)
    if found != wanted:
        raise AssertionError(f"order {number}: {found} instead of {wanted}")


class Inbox:
    """The sequenced messages of one account, over all its connections."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.arrived = asyncio.Event()

    async def take(self, message) -> None:
        """What the library calls with every message."""
        if isinstance(message, soup.SequencedData):
            self.messages.append(bytes(message.data))
            self.arrived.set()

    async def until(self, count: int) -> None:
        """Waits until so many messages are there."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.messages) < count:
            self.arrived.clear()
            await asyncio.wait_for(self.arrived.wait(), deadline - time.monotonic())


async def login(arguments, sequence: int, inbox: Inbox):
    """A session of the library's that wants everything from this sequence number on."""
    return await soup.connect_async((arguments.host, arguments.port), arguments.user, arguments.password, "", sequence,
                                    on_msg_coro=inbox.take)


async def place(session, inbox: Inbox, first: int, last: int, already: int) -> None:
    """Places the orders `first` to `last`; `already` messages were there before the first of them."""
    for number in range(first, last + 1):
        session.send_unseq_data(enter(number))
        if number % IN_FLIGHT_MAX == 0:
            await inbox.until(already + number - first + 1 - IN_FLIGHT_MAX // 2)


async def client(arguments) -> None:
    inbox = Inbox()
    half = arguments.orders // 2
    session = await login(arguments, 1, inbox)
    await place(session, inbox, 1, half, 0)
    # Nobody waits for the answers: what is still under way when the line goes must come after the next login.
    session._transport.abort()
    # What the library has received and not handed out is gone with it, and is asked for again.
    await session.close()
    have = len(inbox.messages)
    session = await login(arguments, have + 1, inbox)
    # What was lost with the line is sent again with its number; what was not is ignored by the other side.
    for number in range(have + 1, half + 1):
        session.send_unseq_data(enter(number))
    await inbox.until(half)
    await place(session, inbox, half + 1, arguments.orders, half)
    await inbox.until(arguments.orders)
    await session.close()
    for number, message in enumerate(inbox.messages, start=1):
        check_accepted(message, number)

    again = Inbox()
    session = await login(arguments, 1, again)
    await again.until(arguments.orders)
    session.logout()
    if again.messages != inbox.messages:
        raise AssertionError("a full replay differs from what came while the orders were placed")
    print(f"client on nasdaq-protocols: {arguments.orders} orders, {have} answers before the line was dropped, "
          "replay equal")


class Exchange(soup.SoupServerSession, session_type="server"):
    """Accepts every order. Keeps each account's messages, so that it can come back."""

    streams: dict[str, list[bytes]] = {}
    numbers: dict[str, int] = {}
    current: dict[str, "Exchange"] = {}
    user = ""

    async def on_login(self, msg):
        self.user = msg.user
        stream = self.streams.setdefault(self.user, [])
        wanted = int(msg.sequence) or len(stream) + 1
        if wanted > len(stream) + 1:
            return soup.LoginRejected(soup.LoginRejectReason.SESSION_NOT_AVAILABLE)
        # After the answer to the login, which the library sends when this returns.
        asyncio.get_running_loop().call_soon(self.take_over, wanted)
        return soup.LoginAccepted("LIBRARY", wanted)

    def take_over(self, wanted: int) -> None:
        """From now on the account's messages go to this connection, the missed ones first."""
        self.current[self.user] = self
        for message in self.streams[self.user][wanted - 1:]:
            self.send_seq_msg(message)

    async def on_unsequenced(self, msg):
        data = bytes(msg.data)
        now_ns = time.time_ns() % 86_400_000_000_000
        if data == b"Q":
            self.publish(QUERY_ANSWER.pack(b"Q", now_ns, self.numbers.get(self.user, 0) + 1))
            return
        kind, number, side, quantity, symbol, price, tif, display, capacity, iso, cross, name, _ = ENTER.unpack(data[:47])
        if kind != b"O" or number <= self.numbers.get(self.user, 0):
            return
        self.numbers[self.user] = number
        self.publish(ACCEPTED.pack(b"A", now_ns, number, side, quantity, symbol, price, tif, display, number, capacity,
                                   iso, cross, b"L", name, 0))

    def publish(self, message: bytes) -> None:
        """One message of the account's stream. What an older connection still had to read is answered on the newer."""
        self.streams[self.user].append(message)
        session = self.current.get(self.user)
        if session is not None and session.is_active():
            session.send_seq_msg(message)


async def server(arguments) -> None:
    loop = asyncio.get_running_loop()
    # By default a server of the library is silent for up to 20 s, too long for its peers. Its own interval is the one
    # that is named after the client.
    listener = await loop.create_server(lambda: Exchange(client_heartbeat_interval=1), arguments.host, arguments.port)
    print("listening on %s:%d" % listener.sockets[0].getsockname()[:2], flush=True)
    await listener.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=["client", "server"])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--user", default="C00001")
    parser.add_argument("--password", default="DEMO")
    parser.add_argument("--orders", type=int, default=10_000)
    arguments = parser.parse_args()
    try:
        asyncio.run({"client": client, "server": server}[arguments.role](arguments))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
