"""A handshake in memory."""

import os
import ssl


class Pair:
    """Both ends of a connection, without one."""

    def __init__(self, server_context, client_context, host=None):
        self.server_in, self.server_out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client_in, self.client_out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = client_context.wrap_bio(self.client_in, self.client_out, False, host)
        self.server = server_context.wrap_bio(self.server_in, self.server_out, server_side=True)

    def shake(self):
        """Raise SSLError unless both ends agree; with TLS 1.3 the client learns it late."""
        done = set()
        for _ in range(10):
            for end in (self.client, self.server):
                try:
                    end.do_handshake()
                    done.add(end)
                except ssl.SSLWantReadError:
                    continue
                finally:
                    self.server_in.write(self.client_out.read())
                    self.client_in.write(self.server_out.read())
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


def with_certificate(credential):
    """The context of a client that also shows who it is."""
    context = anyone()
    with open(os.memfd_create("x"), "w+") as file:
        file.write(credential.key_pem() + credential.chain_pem)
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    return context
