"""A client of few words: one connection, requests one by one, tokens as a test wants them."""

import struct

from barnabas.broker.client.dialing import connect
from barnabas.protocol.client import NEED_DATA, ClientConnection
from barnabas.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from barnabas.protocol.sasl import scram

ALICE = b"\0alice\0secret"


class Wire:
    """One connection to a broker."""

    def __init__(self, broker, address=None):
        self.broker = broker
        self.socket = connect(address or broker.address, 20)
        self.client = ClientConnection("test")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, api, version, request):
        _, chunks = self.client.request(api, version, request)
        self.socket.sendall(b"".join(map(bytes, chunks)))

    def receive(self):
        """Return the next response, or None if the broker has closed the connection."""
        while (answer := self.client.next_response()) is NEED_DATA:
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self.client.receive_data(data)
        return answer[1]

    def ask(self, api, version, request):
        self.send(api, version, request)
        return self.receive()

    def log_in(self, token=ALICE, version=1):
        assert self.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")).error_code == 0
        return self.ask(SASL_AUTHENTICATE, version, SaslAuthenticateRequest(token))

    @property
    def is_closed(self):
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    @property
    def is_closed_soon(self):
        """Whether the broker closes the connection without another request."""
        self.socket.settimeout(0.3)
        try:
            return self.is_closed
        except TimeoutError:
            return False
        finally:
            self.socket.settimeout(20)

    def bare(self, token):
        """Send a bare token; return the bare response, or None if the connection was closed."""
        self.socket.sendall(struct.pack(">i", len(token)) + token)
        size = self.socket.recv(4)
        return self.socket.recv(struct.unpack(">i", size)[0]) if size else None

    def log_in_with_scram(self, user="alice", password="secret", mechanism="SCRAM-SHA-256"):
        """Return the answers to both messages; the second is None where there was no first."""
        client = scram.ScramClient(scram.MECHANISMS[mechanism], user, password, "nonce")
        assert self.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism)).error_code == 0
        first = self.ask(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(client.first()))
        if first.error_code:
            return first, None
        final = client.step(bytes(first.auth_bytes))
        second = self.ask(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(final))
        if not second.error_code:
            client.step(bytes(second.auth_bytes))
        return first, second
