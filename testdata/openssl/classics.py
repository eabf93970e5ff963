# SPDX-License-Identifier: Apache-2.0
"""Makes `classics.json`: vectors of mechanisms that the other folders have none of. Computed by Python's hashlib and hmac and by
`cryptography` (OpenSSL), with the steps that neither has written out here; what RFCs and NIST print is in it as they print it, and
checked here against what is computed. Run it here; the output is the same every time but for the wrapped keys.

`params` is the parameter of the mechanism as it lies in memory on a 64-bit machine, word by word: a number is a word, "=00ff" bytes in
their place, "&00ff" a pointer to bytes, a list a pointer to a structure, "#00ff" the handle of a secret key of this value."""

import hashlib
import hmac
import json

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives import hashes, keywrap, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, x25519
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.cmac import CMAC
from cryptography.hazmat.primitives.kdf.concatkdf import ConcatKDFHash
from cryptography.hazmat.primitives.kdf.x963kdf import X963KDF
from cryptography.hazmat.primitives.poly1305 import Poly1305


HASHES = {
    "MD5": "md5", "SHA1": "sha1", "SHA224": "sha224", "SHA256": "sha256", "SHA384": "sha384", "SHA512": "sha512",
    "SHA512_224": "sha512_224", "SHA512_256": "sha512_256", "SHA3_224": "sha3_224", "SHA3_256": "sha3_256",
    "SHA3_384": "sha3_384", "SHA3_512": "sha3_512",
}


def stream(name, length):
    """Bytes that look random and are always the same."""
    return hashlib.shake_256(name.encode()).digest(length)


def odd(key):
    """With the parity that DES keys have."""
    return bytes(byte ^ (byte.bit_count() + 1) % 2 for byte in key)


def wide(key):
    """Two keys as three."""
    return key if len(key) == 24 else key + key[:8]


def text(data):
    """A pointer and a length."""
    return [f"&{data.hex()}" if data else 0, len(data)]


def derived(mechanism, key, params, value, length=None, type="CKK_GENERIC_SECRET"):
    vector = {"mechanism": mechanism, "does": "derive", "type": type, "key": key.hex(), "params": params}
    return vector | {"length": length, "value": value.hex()}


def ecb(key, block):
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return encryptor.update(block)


def xor(one, other):
    return bytes(a ^ b for a, b in zip(one, other))


def simple():
    base, data = stream("base", 24), stream("data", 20)
    join = {"BASE_AND_DATA": base + data, "DATA_AND_BASE": data + base}
    for name, whole in join.items():
        for length in [None, 30]:
            yield derived(f"CKM_CONCATENATE_{name}", base, text(data), whole[:length], length)
    for length in [None, 25]:
        other = stream("other", 17)
        yield derived("CKM_CONCATENATE_BASE_AND_KEY", base, [f"#{other.hex()}"], (base + other)[:length], length)
    for size in [8, 20, 24, 40]:
        mask = stream("mask", size)
        yield derived("CKM_XOR_BASE_AND_DATA", base, text(mask), xor(base, mask))
    # PKCS#11's own example, then others.
    yield derived("CKM_EXTRACT_KEY_FROM_KEY", bytes.fromhex("329f84a9"), [21], bytes.fromhex("9526"), 2)
    bits = "".join(f"{byte:08b}" for byte in base)
    for first, length in [(0, 24), (1, 3), (95, 24), (191, 16)]:
        taken = (bits[first:] + bits[:first])[:8 * length]
        yield derived("CKM_EXTRACT_KEY_FROM_KEY", base, [first], int(taken, 2).to_bytes(length), length)


def digested():
    for size in [1, 20, 65, 200]:
        base = stream(f"digested {size}", size)
        for name, function in HASHES.items():
            kind = "DERIVE" if name.startswith("SHA3_") else "DERIVATION"
            value = hashlib.new(function, base).digest()
            yield derived(f"CKM_{name}_KEY_{kind}", base, [], value)
            yield derived(f"CKM_{name}_KEY_{kind}", base, [], value[:16], 16)
        for name, function, usual in [("128", hashlib.shake_128, 32), ("256", hashlib.shake_256, 64)]:
            yield derived(f"CKM_SHAKE_{name}_KEY_DERIVE", base, [], function(base).digest(usual))
            yield derived(f"CKM_SHAKE_{name}_KEY_DERIVE", base, [], function(base).digest(100), 100)
        for length in [20, 32, 48, 64]:
            value = hashlib.blake2b(base, digest_size=length).digest()
            yield derived(f"CKM_BLAKE2B_{8 * length}_KEY_DERIVE", base, [], value)


def encrypted():
    for size in [16, 24, 32]:
        key, iv = stream(f"data key {size}", size), stream("data iv", 16)
        for length, wanted in [(16, None), (48, None), (48, 20)]:
            data = stream(f"encrypted {length}", length)
            for name, mode, head in [("ECB", modes.ECB(), []), ("CBC", modes.CBC(iv), [f"={iv.hex()}"])]:
                value = Cipher(algorithms.AES(key), mode).encryptor().update(data)[:wanted]
                yield derived(f"CKM_AES_{name}_ENCRYPT_DATA", key, head + text(data), value, wanted, "CKK_AES")
    for size, type in [(16, "CKK_DES2"), (24, "CKK_DES3")]:
        key, iv, data = odd(stream(f"des data key {size}", size)), stream("des data iv", 8), stream("des data", 24)
        for name, mode, head in [("ECB", modes.ECB(), []), ("CBC", modes.CBC(iv), [f"={iv.hex()}"])]:
            value = Cipher(TripleDES(wide(key)), mode).encryptor().update(data)
            yield derived(f"CKM_DES3_{name}_ENCRYPT_DATA", key, head + text(data), value, None, type)


def prf_plus(key, message, prf, length, numbered):
    out, last = b"", b""
    for number in range(1, 256):
        tail = bytes([number]) if numbered else (b"\0" if not message and not last else b"")
        last = prf(key, last + message + tail)
        out += last
        if len(out) >= length:
            return out[:length]


def ike():
    key, gxy, other = stream("ike key", 32), stream("gxy", 32), stream("ike other", 20)
    ni, nr, cookies = stream("ni", 16), stream("nr", 24), [stream("cky i", 8), stream("cky r", 8)]
    for prf, mac in PRFS:
        nonces = [*text(ni), *text(nr)]
        yield derived("CKM_IKE_PRF_DERIVE", gxy, [prf, 1, *nonces, 0], mac(ni + nr, gxy))
        yield derived("CKM_IKE_PRF_DERIVE", key, [prf, 0, *nonces, 0], mac(key, ni + nr))
        rekeyed = [prf, 1 << 8, *nonces, f"#{gxy.hex()}"]
        yield derived("CKM_IKE_PRF_DERIVE", key, rekeyed, mac(key, gxy + ni + nr))
        for previous, number in [(b"", 0), (other, 1), (other, 2)]:
            params = [prf, 1 if previous else 0, f"#{gxy.hex()}", f"#{previous.hex()}" if previous else 0]
            params += [*text(cookies[0]), *text(cookies[1]), number]
            value = mac(key, previous + gxy + b"".join(cookies) + bytes([number]))
            yield derived("CKM_IKE1_PRF_DERIVE", key, params, value)
        for with_gxy, extra, length in [(False, b"", 100), (False, b"", 20), (True, b"", 64), (True, other, 70), (False, other, 20)]:
            params = [prf, int(with_gxy), f"#{gxy.hex()}" if with_gxy else 0, *text(extra)]
            message = (gxy if with_gxy else b"") + extra
            short = not message and length <= len(key)
            value = key[:length] if short else prf_plus(key, message, mac, length, False)
            yield derived("CKM_IKE1_EXTENDED_DERIVE", key, params, value, length)
        for with_key, length in [(False, 20), (True, 200)]:
            params = [prf, int(with_key), f"#{gxy.hex()}" if with_key else 0, *text(ni + nr)]
            message = (gxy if with_key else b"") + ni + nr
            yield derived("CKM_IKE2_PRF_PLUS_DERIVE", key, params, prf_plus(key, message, mac, length, True), length)
    # RFC 4434 §3, RFC 4615 §4, RFC 2202 §2
    key, message = bytes(range(16)), bytes(range(20))
    printed = [
        (AES_XCBC, key, message, "47f51b4564966215b8985c63055ed308"),
        (AES_XCBC, key[:10], message, "0fa087af7d866e7653434e602fdde835"),
        (AES_XCBC, key + b"\xed\xcb", message, "8cd3c93ae598a9803006ffb67c40e9e4"),
        (AES_CMAC, key, message, "980ae87b5f4c9c5214f5b6a8455e4c2d"),
        (AES_CMAC, key[:10], message, "290d9e112edb09ee141fcf64c0b72f3d"),
        (AES_CMAC, key + b"\xed\xcb", message, "84a348a4a45d235babfffc0d2b4da09a"),
        (MD5, b"\x0b" * 16, b"Hi There", "9294727a3638bb1c13f48ef8158bfc9d"),
        (MD5, b"Jefe", b"what do ya want for nothing?", "750c783e6ab0b503eaa86e310a5db738"),
    ]
    for (prf, mac), key, message, value in printed:
        assert mac(key, message).hex() == value
        for type in ["CKK_GENERIC_SECRET"] + ["CKK_AES"] * (prf != MD5[0] and len(key) == 16):
            params = [prf, 0, *text(message[:7]), *text(message[7:]), 0]
            yield derived("CKM_IKE_PRF_DERIVE", key, params, bytes.fromhex(value), None, type)


def by_hmac(name):
    return lambda key, message: hmac.new(key, message, name).digest()


def by_aes(mac, pads):
    """Keys that are not of 128 bits become so."""
    def prf(key, message):
        key = key.ljust(16, b"\0") if pads else key
        return mac(key if len(key) == 16 else mac(bytes(16), key), message)
    return prf


def cmac(key, message):
    function = CMAC(algorithms.AES(key))
    function.update(message)
    return function.finalize()


def mac(mechanism, type, key, message, tag, params=()):
    vector = {"mechanism": mechanism, "does": "mac", "type": type, "key": key.hex(), "params": list(params)}
    return vector | {"msg": message.hex(), "tag": tag.hex()}


def xcbc(key, message):
    one, two, three = (ecb(key, bytes([number]) * 16) for number in (1, 2, 3))
    blocks = [message[at:at + 16] for at in range(0, len(message), 16)] or [b""]
    last = blocks.pop()
    state = bytes(16)
    for block in blocks:
        state = ecb(one, xor(state, block))
    end = xor(last, two) if len(last) == 16 else xor(last + b"\x80" + bytes(15 - len(last)), three)
    return ecb(one, xor(state, end))


AES_XCBC, AES_CMAC = (0x108C, by_aes(xcbc, True)), (0x108A, by_aes(cmac, False))
MD5 = 0x211, by_hmac("md5")
PRFS = [(0x221, by_hmac("sha1")), (0x251, by_hmac("sha256")), (0x271, by_hmac("sha512")), MD5, AES_XCBC, AES_CMAC]


def macs():
    # RFC 3566 §4.6
    key = bytes(range(16))
    printed = {
        0: "75f0251d528ac01c4573dfd584d79f29", 3: "5b376580ae2f19afe7219ceef172756f",
        16: "d2a246fa349b68a79998a4394ff7a263", 20: "47f51b4564966215b8985c63055ed308",
        32: "f54f0ec8d2b9f3d36807734bd5283fd4",
    }
    for length, tag in printed.items():
        message = bytes(range(length))
        assert xcbc(key, message).hex() == tag, length
        yield mac("CKM_AES_XCBC_MAC", "CKK_AES", key, message, bytes.fromhex(tag))
        yield mac("CKM_AES_XCBC_MAC_96", "CKK_AES", key, message, bytes.fromhex(tag)[:12])
    for length in [15, 17, 48, 100]:
        key, message = stream(f"xcbc key {length}", 16), stream(f"xcbc {length}", length)
        yield mac("CKM_AES_XCBC_MAC", "CKK_AES", key, message, xcbc(key, message))
    for size in [16, 24, 32]:
        for length in [1, 15, 16, 17, 32, 100]:
            key, message = stream(f"cbc-mac key {size}", size), stream(f"cbc-mac {length}", length)
            whole = message + bytes(-length % 16)
            tag = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor().update(whole)[-16:]
            yield mac("CKM_AES_MAC", "CKK_AES", key, message, tag[:8])
            for wanted in [4, 16]:
                yield mac("CKM_AES_MAC_GENERAL", "CKK_AES", key, message, tag[:wanted], [wanted])
    # RFC 8439 §2.5.2, then others.
    key = bytes.fromhex("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b")
    tag = bytes.fromhex("a8061dc1305136c6c22b8baf0c0127a9")
    yield mac("CKM_POLY1305", "CKK_POLY1305", key, b"Cryptographic Forum Research Group", tag)
    for length in [0, 1, 15, 16, 17, 255]:
        key, message = stream(f"poly key {length}", 32), stream(f"poly {length}", length)
        yield mac("CKM_POLY1305", "CKK_POLY1305", key, message, Poly1305.generate_tag(key, message))
    for name, function in OTHERS.items():
        for size in [1, 20, 64, 65, 128, 129, 200]:
            key, message = stream(f"hmac {name} {size}", size), stream(f"hmac message {name} {size}", 3 * size)
            tag = hmac.new(key, message, function).digest()
            yield mac(f"CKM_{name}_HMAC", "CKK_GENERIC_SECRET", key, message, tag)
            yield mac(f"CKM_{name}_HMAC_GENERAL", "CKK_GENERIC_SECRET", key, message, tag[:10], [10])


def blake(length):
    return lambda data=b"": hashlib.blake2b(data, digest_size=length)


OTHERS = {f"BLAKE2B_{8 * length}": blake(length) for length in [20, 32, 48, 64]}
OTHERS["RIPEMD160"] = lambda data=b"": hashlib.new("ripemd160", data)


def digests():
    for name, function in OTHERS.items():
        for length in [0, 1, 55, 56, 63, 64, 65, 111, 127, 128, 129, 255, 256, 257, 1000]:
            message = stream(f"digest {name} {length}", length)
            digest = function(message).hexdigest()
            yield {"mechanism": f"CKM_{name}", "does": "digest", "msg": message.hex(), "digest": digest}


def sealed(mechanism, type, key, params, message, ct):
    vector = {"mechanism": mechanism, "does": "encrypt", "type": type, "key": key.hex(), "params": params}
    return vector | {"msg": message.hex(), "ct": ct.hex()}


def feedback(key, iv, message, bits):
    """SP 800-38A §6.3, in pieces of so many bits."""
    register, out = int.from_bytes(iv), []
    binary = "".join(f"{byte:08b}" for byte in message)
    for at in range(0, len(binary), bits):
        piece = binary[at:at + bits]
        mask = int.from_bytes(ecb(key, register.to_bytes(16))) >> (128 - len(piece))
        made = int(piece, 2) ^ mask
        out.append(f"{made:0{len(piece)}b}")
        register = (register << len(piece) | made) & ((1 << 128) - 1)
    return int("".join(out), 2).to_bytes(len(message)) if message else b""


def stolen(key, iv, message):
    """SP 800-38A, addendum: CBC-CS1."""
    rest = len(message) % 16
    ct = Cipher(algorithms.AES(key), modes.CBC(iv)).encryptor().update(message + bytes(-len(message) % 16))
    return ct if rest == 0 else ct[:-32] + ct[-32:-32 + rest] + ct[-16:]


def ciphers():
    # SP 800-38A, F.3.1 (CFB1), F.3.7 (CFB8), F.4.1 (OFB)
    key, iv = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"), bytes(range(16))
    plain = bytes.fromhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51")
    printed = {
        "CFB1": (plain[:2], "68b3"), "CFB8": (plain[:18], "3b79424c9c0dd436bace9e0ed4586a4f32b9"),
        "OFB": (plain, "3b3fd92eb72dad20333449f8e83cfb4a7789508d16918f03f53c52dac54ed825"),
    }
    for name, (message, ct) in printed.items():
        yield sealed(f"CKM_AES_{name}", "CKK_AES", key, [f"={iv.hex()}"], message, bytes.fromhex(ct))
    assert feedback(key, iv, plain[:2], 1).hex() == "68b3"
    assert feedback(key, iv, plain[:18], 8).hex() == printed["CFB8"][1]
    for size in [16, 24, 32]:
        for length in [1, 8, 15, 16, 17, 31, 32, 33, 48, 100]:
            key, iv = stream(f"mode key {size}", size), stream(f"mode iv {length}", 16)
            message, params = stream(f"mode {length}", length), [f"={iv.hex()}"]
            for bits in [1, 8, 64]:
                yield sealed(f"CKM_AES_CFB{bits}", "CKK_AES", key, params, message, feedback(key, iv, message, bits))
            ct = Cipher(algorithms.AES(key), modes.OFB(iv)).encryptor().update(message)
            yield sealed("CKM_AES_OFB", "CKK_AES", key, params, message, ct)
            if length >= 16:
                yield sealed("CKM_AES_CTS", "CKK_AES", key, params, message, stolen(key, iv, message))
    # RFC 8439 §2.4.2, then others; of a wide counter the upper half is a part of the nonce to OpenSSL.
    key, words = bytes(range(32)), bytes.fromhex("01000000000000000000004a00000000")
    ct = bytes.fromhex("6e2e359a2568f98041ba0728dd0d6981")
    yield sealed("CKM_CHACHA20", "CKK_CHACHA20", key, chacha(words, 4), b"Ladies and Gentlemen of the clas"[:16], ct)
    for length in [0, 1, 63, 64, 65, 200, 1000]:
        key, words = stream(f"chacha key {length}", 32), stream(f"chacha words {length}", 16)
        message = stream(f"chacha {length}", length)
        ct = Cipher(algorithms.ChaCha20(key, words), mode=None).encryptor().update(message)
        for width in [4, 8]:
            yield sealed("CKM_CHACHA20", "CKK_CHACHA20", key, chacha(words, width), message, ct)
    # The length of the nonce in bits, as the standard has it, and in bytes.
    key, nonce, aad, message = (stream(f"poly1305 {name}", size) for name, size in [("key", 32), ("nonce", 12), ("aad", 20), ("message", 100)])
    ct = ChaCha20Poly1305(key).encrypt(nonce, message, aad)
    for length in [96, 12]:
        yield sealed("CKM_CHACHA20_POLY1305", "CKK_CHACHA20", key, [f"&{nonce.hex()}", length, f"&{aad.hex()}", 20], message, ct)


def chacha(words, width):
    return [f"&{words[:width].hex()}", 8 * width, f"&{words[width:].hex()}", 8 * (16 - width)]


def wrapped(mechanism, private, params, value, blob, sure):
    """`sure`: whether wrapping gives the same; none where it is only opened."""
    vector = {"mechanism": mechanism, "does": "unwrap", "private": private, "params": params}
    return vector | {"value": value.hex(), "wrapped": blob.hex(), "sure": sure}


def number(value):
    return value.to_bytes((value.bit_length() + 7) // 8).hex()


def wraps():
    for length in [1, 7, 8, 9, 16, 20, 24, 31, 32, 64, 65]:
        for size in [16, 32]:
            key, value = stream(f"kek {size}", size), stream(f"wrapped {length}", length)
            secret = {"CKA_KEY_TYPE": "CKK_AES", "CKA_VALUE": key.hex()}
            if length >= 8:
                padding_ = 8 - length % 8
                blob = keywrap.aes_key_wrap(key, value + bytes([padding_]) * padding_)
                for name in ["PKCS7", "PAD"]:
                    yield wrapped(f"CKM_AES_KEY_WRAP_{name}", secret, [], value, blob, True)
            blob = keywrap.aes_key_wrap_with_padding(key, value)
            yield wrapped("CKM_AES_KEY_WRAP_PAD", secret, [], value, blob, None)
    yield from rsa_wraps()
    yield from ec_wraps()


def rsa_wraps():
    key = rsa.generate_private_key(65537, 2048)
    numbers = key.private_numbers()
    public = numbers.public_numbers
    private = {
        "CKA_KEY_TYPE": "CKK_RSA", "CKA_MODULUS": number(public.n), "CKA_PUBLIC_EXPONENT": number(public.e),
        "CKA_PRIVATE_EXPONENT": number(numbers.d), "CKA_PRIME_1": number(numbers.p), "CKA_PRIME_2": number(numbers.q),
        "CKA_EXPONENT_1": number(numbers.dmp1), "CKA_EXPONENT_2": number(numbers.dmq1), "CKA_COEFFICIENT": number(numbers.iqmp),
    }
    for bits, hash_, mechanism, mgf, label in [
        (256, hashes.SHA256(), 0x250, 2, b""), (128, hashes.SHA1(), 0x220, 1, b""), (192, hashes.SHA512(), 0x270, 4, b"label"),
    ]:
        transport, value = stream(f"transport {bits}", bits // 8), stream(f"rsa aes {bits}", 33)
        oaep = padding.OAEP(padding.MGF1(hash_), hash_, label or None)
        blob = key.public_key().encrypt(transport, oaep) + keywrap.aes_key_wrap_with_padding(transport, value)
        params = [bits, [mechanism, mgf, 1, *text(label)]]
        yield wrapped("CKM_RSA_AES_KEY_WRAP", private, params, value, blob, False)


def ec_wraps():
    for curve, oid in [(ec.SECP256R1(), "06082a8648ce3d030107"), (ec.SECP521R1(), "06052b81040023")]:
        size = (curve.key_size + 7) // 8
        key, own = ec.generate_private_key(curve), ec.generate_private_key(curve)
        point = lambda key: key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        private = {
            "CKA_KEY_TYPE": "CKK_EC", "CKA_EC_PARAMS": oid,
            "CKA_VALUE": key.private_numbers().private_value.to_bytes(size).hex(), "point": point(key).hex(),
        }
        shared = own.exchange(ec.ECDH(), key.public_key())
        for mechanism in ["CKM_ECDH_AES_KEY_WRAP", "CKM_ECDH_COF_AES_KEY_WRAP"]:
            yield from agreed(mechanism, private, shared, point(own))
    key, own = x25519.X25519PrivateKey.generate(), x25519.X25519PrivateKey.generate()
    raw = lambda key: key.public_bytes_raw()
    private = {
        "CKA_KEY_TYPE": "CKK_EC_MONTGOMERY", "CKA_EC_PARAMS": "06032b656e",
        "CKA_VALUE": key.private_bytes_raw().hex(), "point": raw(key.public_key()).hex(),
    }
    yield from agreed("CKM_ECDH_X_AES_KEY_WRAP", private, own.exchange(key.public_key()), raw(own.public_key()))


def agreed(mechanism, private, shared, point):
    """CKD_NULL, CKD_SHA256_KDF, CKD_SHA384_KDF_SP800"""
    info = b"shared"
    for bits, kdf in [(256, 1), (128, 1), (256, 6), (192, 0x11)]:
        length = bits // 8
        if kdf == 1:
            transport, said = shared[-length:], b""
        elif kdf == 6:
            transport, said = X963KDF(hashes.SHA256(), length, info).derive(shared), info
        else:
            transport, said = ConcatKDFHash(hashes.SHA384(), length, info).derive(shared), info
        value = stream(f"ecdh aes {bits}", 40)
        blob = point + keywrap.aes_key_wrap_with_padding(transport, value)
        params = [bits, kdf, len(said), f"&{said.hex()}" if said else 0]
        yield wrapped(mechanism, private, params, value, blob, False)


def main():
    parts = [simple, digested, encrypted, ike, macs, digests, ciphers, wraps]
    rows = ",\n".join("    " + json.dumps(test) for part in parts for test in part())
    with open("classics.json", "w") as file:
        file.write(f'{{\n  "source": "classics.py",\n  "tests": [\n{rows}\n  ]\n}}\n')


main()
