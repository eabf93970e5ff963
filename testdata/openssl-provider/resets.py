# SPDX-License-Identifier: Apache-2.0
# Clients that send a ClientHello and reset their connection: `resets.py PORT NUMBER`. Some do so at once, others while the server signs.
import socket
import ssl
import struct
import sys
import time

context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
for number in range(int(sys.argv[2])):
    # A server sees no difference where one is sent again.
    if number % 20 == 0:
        came, left = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            context.wrap_bio(came, left, server_hostname="localhost").do_handshake()
        except ssl.SSLWantReadError:
            pass
        hello = left.read()
    client = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.sendall(hello)
    time.sleep(number % 8 * 0.0003)
    client.close()
