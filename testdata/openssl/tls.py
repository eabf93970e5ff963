# SPDX-License-Identifier: Apache-2.0
"""Makes `tls.json`: vectors of TLS's and SSL's derivations and MACs. Computed by Python's hmac and hashlib, and compared with OpenSSL's
TLS1-PRF, with vectors of NIST's ACVP server (TLS-v1.2, RFC 7627; public domain) and with the one that the IETF's list of TLS published
for SHA-256. What SSL 3.0 does was compared with tlslite-ng. Run it here; the output is the same every time.

`params` are as in classics.py; their last pointer is where the caller is told `version`, or the handles and IVs of a connection."""

import hashlib
import hmac
import json
import subprocess

DIGESTS = {"SHA224": 0x255, "SHA256": 0x250, "SHA384": 0x260, "SHA512": 0x270, "SHA3_256": 0x2B0}
TLS_PRF, HMACS = 0x378, {"SHA256": "sha256", "SHA384": "sha384", "SHA512": "sha512", "SHA224": "sha224", "SHA3_256": "sha3_256"}

# Of NIST: hash, secret, session hash, random values of client and server, master secret, key block.
NIST = [
    (
        "SHA256",
        "8252B983A6459A6FB3B9DEBE8725247E276139EBF7C9ADCCDD7D240F3ADA7F5E3351B2769B6C8DC169A6D799C3C0FFEB",
        "1359D7DF74CB27C67F74C98D521D442B887EAF0DECF6E382C62434D6C3DD7D0D",
        "ABE7AF69AFFC5E0944F4009B3E7ABD1CC0A5CCE8DB055EFF4A509E5B6DE9475A",
        "50E0A1A1FD64A55259781A5C22580A81F99799C32F52D3F48D2C10C5C692E289",
        "43A5E821FCF5446C712207F7CD161ED213EE3B9D001D418C57231BEFD596B583ECD55AB2C4456B02738698F90BC59AC0",
        "4886E75BE82DD4FB73C540729072D3E29B93C164E1CFFE071F1212B1237B98DC0B0A5895F331F7180CEB30B17BB8C3E92A074B26325FF975237DBD22320C0B88"
        "D64931F39C777B1527D36A999AD5FE5EE7F53FC42A509BEB22634B17EC7B768EAF6A87977CF8670B34D0A76EBCE6A659DAB6C15B4B86B98B9A63C50BBE1E2A09",
    ),
    (
        "SHA384",
        "96C1AFEA34FB496508D94D05FE84FB08AFB8940D4D04ED756F848855FE1F67C45192B0FEE13A7BDFC4F5EC7D41A0CA50",
        "BE204981D3B8BC3F32F56316F9416D2BC5844F8C0B99168D774B942B02D88BC24BB6A7E890CB3145C7BCD6BA557D140B",
        "43F578DB6FC2A6965F35BC667A6406ADF53BB03DA3C706C8776ABFD75F72B093",
        "509CFBFD30C9127BD658A6E47B26C2818FF5519B0F31C9036CEE24DDDC78DAF6",
        "BB5DC357E4322AEA9E59D2349FDF4C6477E8C0F35863D20A8CAF9D2D04F06C68818FFDF1385A99AF182F1684DD94147E",
        "0553CF4792432D943BE0E37C7A700C5E26AEABF31889A4C9E603039857FE41192BB7375416ED97A3E39BDC42AD3F861F17FB3ED54C9C059151070FD524C8571D"
        "A8F85EA33C64F29E381001EAA3A06A843C0A378C6FC114BA9AD52E3D09A62A5D944BE8511880691EBBD3BF8D72F80A9D5FEBD511C51C0FC38D7123B13F8C38F3",
    ),
]


def stream(name, length):
    """Bytes that look random and are always the same."""
    return hashlib.shake_256(name.encode()).digest(length)


def chain(digest, secret, seed, length):
    out, before = b"", seed
    while len(out) < length:
        before = hmac.digest(secret, before, digest)
        out += hmac.digest(secret, before + seed, digest)
    return out[:length]


def openssl(digest, secret, seed, length):
    options = [f"digest:{digest}", f"hexsecret:{secret.hex()}", f"hexseed:{seed.hex()}"]
    command = ["openssl", "kdf", "-keylen", str(length), *(part for option in options for part in ("-kdfopt", option)), "TLS1-PRF"]
    return bytes.fromhex(subprocess.run(command, capture_output=True, check=True, text=True).stdout.replace(":", ""))


def prf(name, secret, label, seed, length):
    """By the hash function of TLS 1.2, or as it was before."""
    seed = label.encode() + seed
    if name == "old":
        half = (len(secret) + 1) // 2
        parts = chain("md5", secret[:half], seed, length), chain("sha1", secret[-half:], seed, length)
        out = bytes(a ^ b for a, b in zip(*parts))
    else:
        out = chain(HMACS[name], secret, seed, length)
    if not name.startswith("SHA3"):
        assert out == openssl("MD5-SHA1" if name == "old" else name, secret, seed, length)
    return out


def nested(secret, seed, length):
    out = b""
    for number in range(length // 16 + 1):
        inner = hashlib.sha1(bytes([65 + number]) * (number + 1) + secret + seed).digest()
        out += hashlib.md5(secret + inner).digest()
    return out[:length]


def expand(name, secret, label, seed, length):
    return nested(secret, seed, length) if name == "ssl" else prf(name, secret, label, seed, length)


def number(name):
    return TLS_PRF if name == "old" else DIGESTS[name]


def pointer(data):
    return f"&{data.hex()}" if data else 0


def randoms(client, server):
    return [pointer(client), len(client), pointer(server), len(server)]


def derived(mechanism, secret, params, value, length=None, **more):
    vector = {"mechanism": mechanism, "does": "derive", "type": "CKK_GENERIC_SECRET", "key": secret.hex(), "params": params}
    return vector | {"length": length, "value": value.hex()} | more


def masters():
    client, server = stream("client", 32), stream("server", 32)
    for name in ("ssl", "old", *DIGESTS):
        family = {"ssl": "CKM_SSL3", "old": "CKM_TLS"}.get(name, "CKM_TLS12")
        for length, suffix in ((48, ""), (32, "_DH"), (33, "_DH"), (256, "_DH")):
            secret = b"\3\3" + stream(f"secret {length}", length - 2)
            value = expand(name, secret, "master secret", client + server, 48)
            last = [] if name in ("ssl", "old") else [number(name)]
            version = {"version": "0303"} if not suffix else {}
            for told in ("&0000", 0) if not suffix else (0,):
                params = [*randoms(client, server), told, *last]
                yield derived(f"{family}_MASTER_KEY_DERIVE{suffix}", secret, params, value, **(version if told else {}))
            if last:
                hashed = stream("session", hashlib.new(HMACS[name]).digest_size)
                value = expand(name, secret, "extended master secret", hashed, 48)
                params = [number(name), pointer(hashed), len(hashed), 0]
                yield derived(f"CKM_TLS12_EXTENDED_MASTER_KEY_DERIVE{suffix}", secret, params, value, length=48)
    for name, secret, hashed, _, _, master, _ in NIST:
        secret, hashed, master = map(bytes.fromhex, (secret, hashed, master))
        assert prf(name, secret, "extended master secret", hashed, 48) == master
        params = [number(name), pointer(hashed), len(hashed), 0]
        yield derived("CKM_TLS12_EXTENDED_MASTER_KEY_DERIVE", secret, params, master)


def connection(mechanism, name, master, client, server, sizes, block=None):
    """Keys in the order in which they are cut off, and the IVs."""
    mac, key, iv = sizes
    safe = mechanism == "CKM_TLS12_KEY_SAFE_DERIVE"
    lengths = [mac, mac, key, key, iv, iv]
    whole = expand(name, master, "key expansion", server + client, sum(lengths))
    assert block is None or block.startswith(whole)
    parts = [whole[sum(lengths[:at]) :][:length].hex() or None for at, length in enumerate(lengths)]
    told = [0, 0, 0, 0, pointer(bytes(iv)) if not safe else 0, pointer(bytes(iv)) if not safe else 0]
    params = [8 * mac, 8 * key, 8 * iv, 0, *randoms(client, server), told]
    params += [] if name in ("ssl", "old") else [number(name)]
    vector = {"mechanism": mechanism, "does": "connection", "type": "CKK_GENERIC_SECRET", "key": master.hex(), "params": params}
    return vector | {"keys": parts[:4], "ivs": [None, None] if safe else parts[4:]}


def connections():
    client, server, master = stream("client", 32), stream("server", 32), stream("master", 48)
    for sizes in ((20, 16, 16), (0, 32, 4), (32, 32, 0), (20, 0, 0), (0, 16, 0)):
        for mechanism, name in (
            ("CKM_SSL3_KEY_AND_MAC_DERIVE", "ssl"),
            ("CKM_TLS_KEY_AND_MAC_DERIVE", "old"),
            ("CKM_TLS12_KEY_AND_MAC_DERIVE", "SHA256"),
            ("CKM_TLS12_KEY_AND_MAC_DERIVE", "SHA384"),
            ("CKM_TLS12_KEY_SAFE_DERIVE", "SHA256"),
        ):
            yield connection(mechanism, name, master, client, server, sizes)
    for name, _, _, client, server, master, block in NIST:
        client, server, master, block = map(bytes.fromhex, (client, server, master, block))
        yield connection("CKM_TLS12_KEY_AND_MAC_DERIVE", name, master, client, server, (20, 32, 12), block)


def kdfs():
    client, server, master = stream("client", 32), stream("server", 32), stream("master", 48)
    for name in ("old", *DIGESTS):
        for context in (None, b"", b"some context"):
            seed = client + server + (b"" if context is None else len(context).to_bytes(2, "big") + context)
            value = expand(name, master, "EXPORTER-test", seed, 100)
            said = [pointer(context), len(context)] if context else [0 if context is None else "&00", 0]
            params = [number(name), pointer(b"EXPORTER-test"), 13, *randoms(client, server), *said]
            for mechanism in ("CKM_TLS_KDF",) if name == "old" else ("CKM_TLS_KDF", "CKM_TLS12_KDF"):
                yield derived(mechanism, master, params, value, 100)
    # https://mailarchive.ietf.org/arch/msg/tls/fzVCzk-z3FShgGJ6DOXqM1ydxms/
    secret, seed = bytes.fromhex("9bbe436ba940f017b17652849a71db35"), bytes.fromhex("a0ba9f936cda311827a6f796ffd5198c")
    value = bytes.fromhex(
        "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a6b301791e90d35c9c9a46b4e14baf9af0fa022f7077def17abfd3797c0564bab4fbc9166"
        "6e9def9b97fce34f796789baa48082d122ee42c5a72e5a5110fff70187347b66"
    )
    assert prf("SHA256", secret, "test label", seed, 100) == value
    params = [DIGESTS["SHA256"], pointer(b"test label"), 10, pointer(seed), len(seed), 0, 0, 0, 0]
    yield derived("CKM_TLS12_KDF", secret, params, value, 100)


def mac(mechanism, params, secret, message, tag):
    vector = {"mechanism": mechanism, "does": "mac", "type": "CKK_GENERIC_SECRET", "key": secret.hex(), "params": params}
    return vector | {"msg": message.hex(), "tag": tag.hex()}


def macs():
    master, message = stream("master", 48), stream("hash of a handshake", 36)
    for side, label in ((1, "server finished"), (2, "client finished")):
        for name in ("old", *DIGESTS):
            for length in (12, 32, 255):
                tag = prf(name, master, label, message, length)
                for mechanism in ("CKM_TLS_MAC",) if name == "old" else ("CKM_TLS_MAC", "CKM_TLS12_MAC"):
                    yield mac(mechanism, [number(name), length, side], master, message, tag)
        tag = prf("old", master, label, message, 12)
        yield mac(f"CKM_TLS10_MAC_{label[:6].upper()}", [], master, message, tag)
    for name, pad in (("md5", 48), ("sha1", 40)):
        secret = stream(f"record {name}", hashlib.new(name).digest_size)
        inner = hashlib.new(name, secret + b"\x36" * pad + message).digest()
        tag = hashlib.new(name, secret + b"\x5c" * pad + inner).digest()
        for length in (8, len(tag)):
            yield mac(f"CKM_SSL3_{name.upper()}_MAC", [length], secret, message, tag[:length])


TESTS = [*masters(), *connections(), *kdfs(), *macs()]

with open("tls.json", "w", encoding="utf-8") as file:
    file.write('{"what": "made by tls.py", "tests": [\n' + ",\n".join(map(json.dumps, TESTS)) + "\n]}\n")
