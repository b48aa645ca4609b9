"""A handshake in memory."""

import ssl


class Pair:
    """Both ends of a connection, without one."""

    def __init__(self, server_context, client_context, host=None):
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = client_context.wrap_bio(to_client, to_server, server_hostname=host)
        self.server = server_context.wrap_bio(to_server, to_client, server_side=True)

    def shake(self):
        """Raise SSLError unless both ends agree; TLS 1.3 tells the client late."""
        done = set()
        for _ in range(10):
            for end in (self.client, self.server):
                try:
                    end.do_handshake()
                    done.add(end)
                except ssl.SSLWantReadError:
                    continue
        assert len(done) == 2
        return self


def anyone(**changes):
    """The context of a client that accepts every server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for name, value in changes.items():
        setattr(context, name, value)
    return context
