"""Writes an ML-DSA-44 key of Wycheproof's in each form of RFC 9881, section 6: seed.der, expanded.der and both.der; and in odd ones."""

import json
import pathlib

WYCHEPROOF = pathlib.Path(__file__).parent.parent / "wycheproof"


def group(name):
    return json.loads((WYCHEPROOF / f"mldsa_44_{name}_test.json").read_text())["testGroups"][0]


def element(tag, content):
    length = len(content)
    if length < 0x80:
        return bytes([tag, length]) + content
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(size)]) + size + content


def write(name, private, parameters=b""):
    algorithm = element(6, bytes.fromhex("608648016503040311")) + parameters
    parts = element(2, b"\0") + element(0x30, algorithm) + element(4, private)
    pathlib.Path(name).write_bytes(element(0x30, parts))


seed = bytes.fromhex(group("sign_seed")["privateSeed"])
expanded = bytes.fromhex(group("sign_noseed")["privateKey"])
assert group("sign_seed")["publicKey"] == group("sign_noseed")["publicKey"]
both = element(4, seed) + element(4, expanded)
write("seed.der", element(0x80, seed))
write("expanded.der", element(4, expanded))
write("both.der", element(0x30, both))
write("other.der", element(0x30, element(4, bytes(32)) + element(4, expanded)))
write("short.der", element(0x80, seed[1:]))
write("cut.der", element(4, expanded[1:]))
write("more.der", element(0x30, both + element(4, b"")))
write("null.der", element(0x80, seed), element(5, b""))
pathlib.Path("public.raw").write_bytes(bytes.fromhex(group("sign_seed")["publicKey"]))
