#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes dsa_parameters.json: primes and bases of DSA, made of their seeds by FIPS 186-4 appendices A.1.1.2, A.1.2, C.6 and A.2.3.

The seeds are some of those that NIST's vectors for the validation of DSA parameters call right (CAVS 11.1, PQGVer.rsp of the archive
186-3dsatestvectors, 2011). What is made of them here begins and ends, and was found at the try, as it stands there: each is compared.
"""

import hashlib
import json
import math
import os
import random

HERE = os.path.dirname(os.path.abspath(__file__))

# Hash, bits of both primes, seed, and of the right answer: the beginning and the end of p, all of q, the counter.
PROBABLE = [
    ("sha1", 1024, 160, "a51d359c76d7e6f55de7d5debe14a510e1639e5a",
     "9dd03ca284e00b4c8253f3fdc5c5c573", "b75017884b8bad359a097a9ea1", "9e9d6b2587d39727e87039fcb9b974f5fa424aa9", 370),
    ("sha256", 1024, 160, "aab093c83eef8483ae28014e5388aa749e453839",
     "d71028d4c07c92334713d97e2634e06d", "e2be687d7b84397bdbdd4a768df1", "bfadef9eee13c15f6d2eae7d1a8f894879370879", 466),
    ("sha224", 2048, 224, "3068dde74863f18a3c6e5caf244df178c697a4b6aa087226c1abe4ab",
     "b0c026ce57c43f982decd609fbeffa9f", "7632f28a2d71437ee274ed3ec9578db",
     "a09bbc32691f44132a667220ccf5ebfa77ba15016e1f993a0cb74691", 307),
    ("sha256", 2048, 224, "830d8ec04e10438e9317ac941a82af8963d44e5b93a133cf1dfb045a",
     "f751f04dc5d792cd2723f12b83cb653c", "a55740a5783564506312f9d751739db1",
     "de49c5aed92538c768e9711c231b3f84e6ec56bb90e91ecc7a7a0bb7", 1553),
]
# Hash, bits, first seed, beginning and end of p, q, the ends of the seed of p and of the seed of q, counters of p and of q.
PROVABLE = [
    ("sha512", 1024, 160, "f20d34d2f90c6b406f848606a431b2d58a8ff797",
     "de3f22a8000b7152c5221a601441a94d", "128e88497c1d7b0ddc6f69407b", "affb231b9b5863c69387a5f298fee55f7e265457",
     "8a8ffa96", "8a8ff7b7", 432, 28),
    ("sha384", 1024, 160, "771ecf31c260331b19df5575414ddee00ef52e9bdc6c73d7f5e6b80c4146139e8e9a5be10692f1336b208cfc",
     "c190741d9ef86993711167e692c6af37", "c5ac11587d80e4a0ee21", "ce97a9ac870eed4112bfbdd6e0b56bda2f699ee7",
     "6b209233", "6b208d57", 612, 81),
    ("sha224", 2048, 224, "0fea86ab7c3513338e5135511b6b7d2b3acfe1815fd172580b0f6c044a7fe48b46ac2e5e",
     "a389cc658c16ccadd0965295104aebae", "a45bad79503f1d529595d4a2d3680b1019",
     "ced00113be9b403ec15416f74c23576aaaa5c1253fe96806f40bad69", "46ac3b16", "46ac2ede", 630, 124),
    ("sha256", 2048, 224, "c885992e7a55147634b1e3dde0fed8146b6983a8416ab2348aa864e6",
     "c5a8a400cf96bef371bd86dd57d6b369", "c7731d3ae594dc86e90219f613",
     "9dac6e11e47cf4f782eafbfe30791917d3ea3ef693bbd73a9687af89", "8aa8838f", "8aa86530", 1415, 64),
]
# Hash, bits, the first seed of the primes (by A.1.2), index, beginning and end of g.
BASES = [
    ("sha256", 1024, 160, "c0236642d727aa13274c143f02ef92bdea088698", 0x6A,
     "36a3a452f98b493ca74edb06125a0bb7", "bde517ece8080744dc61f10d"),
    ("sha384", 1024, 160, "bc69053d767a61913d8416517d0862ffa949a38d", 0xDC,
     "716c1000941b1e5dff9828aefdaa977a", "a1293a499d5f699fb9578"),
    ("sha512", 1024, 160, "9bac60db35dbab3e26137891c5cdcc586edae3de", 0x5E,
     "9e9b0c5e05badddc91a3ac93f8361177", "f74999dbd9794f9caf0fd"),
]


def digest(name, number, length):
    return int.from_bytes(hashlib.new(name, (number % 256**length).to_bytes(length, "big")).digest(), "big")


def is_prime(n):
    if n < 2 or any(n % small == 0 and n != small for small in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)):
        return False
    odd, zeros = n - 1, 0
    while odd % 2 == 0:
        odd, zeros = odd // 2, zeros + 1
    for _ in range(40):
        power = pow(random.randrange(2, n - 1) if n > 4 else 2, odd, n)
        if power in (1, n - 1):
            continue
        for _ in range(zeros - 1):
            power = power * power % n
            if power == n - 1:
                break
        else:
            return False
    return True


def many(name, seed, length, count):
    width = hashlib.new(name).digest_size * 8
    return sum(digest(name, seed + at, length) << at * width for at in range(count))


def probable(name, bits, short, seed, length):
    width = hashlib.new(name).digest_size * 8
    u = digest(name, seed, length) % 2 ** (short - 1)
    q = 2 ** (short - 1) + u + 1 - u % 2
    assert is_prime(q)
    n = -(-bits // width) - 1
    offset = 1
    for counter in range(4 * bits):
        x = many(name, seed + offset, length, n + 1) % 2 ** (bits - 1) + 2 ** (bits - 1)
        p = x - (x % (2 * q) - 1)
        if p >= 2 ** (bits - 1) and is_prime(p):
            return p, q, counter
        offset += n + 1


def grown(name, bits, c0, by, seed, length, counter):
    count = -(-bits // (hashlib.new(name).digest_size * 8))
    x = many(name, seed, length, count) % 2 ** (bits - 1) + 2 ** (bits - 1)
    seed += count
    t = -(-x // (2 * by * c0))
    while True:
        if 2 * t * by * c0 + 1 > 2**bits:
            t = -(-(2 ** (bits - 1)) // (2 * by * c0))
        c = 2 * t * by * c0 + 1
        counter += 1
        a = 2 + many(name, seed, length, count) % (c - 3)
        seed += count
        z = pow(a, 2 * t * by, c)
        if math.gcd(z - 1, c) == 1 and pow(z, c0, c) == 1:
            return c, seed, counter
        t += 1


def proven(name, bits, seed, length):
    if bits >= 33:
        c0, seed, counter = proven(name, -(-bits // 2) + 1, seed, length)
        return grown(name, bits, c0, 1, seed, length, counter)
    counter = 0
    while True:
        c = digest(name, seed, length) ^ digest(name, seed + 1, length)
        c = (2 ** (bits - 1) + c % 2 ** (bits - 1)) | 1
        counter, seed = counter + 1, seed + 2
        if is_prime(c):
            return c, seed, counter


def provable(name, bits, short, seed, length):
    q, qseed, qcounter = proven(name, short, seed, length)
    p0, pseed, pcounter = proven(name, -(-bits // 2) + 1, qseed, length)
    p, pseed, pcounter = grown(name, bits, p0, q, pseed, length, pcounter)
    return p, q, pseed, qseed, pcounter, qcounter


def base(name, p, q, seed, index):
    for count in range(1, 65536):
        w = hashlib.new(name, seed + b"ggen" + bytes([index]) + count.to_bytes(2, "big")).digest()
        g = pow(int.from_bytes(w, "big"), (p - 1) // q, p)
        if g > 1:
            return g


def main():
    rows = []
    for name, bits, short, text, first, last, right, counter in PROBABLE:
        seed = bytes.fromhex(text)
        p, q, found = probable(name, bits, short, int.from_bytes(seed, "big"), len(seed))
        p, q = f"{p:x}", f"{q:x}"
        assert p.startswith(first) and p.endswith(last) and q == right and found == counter
        rows.append({"kind": "probable", "hash": name, "seed": text, "p": p, "q": q, "counter": counter})
    for name, bits, short, text, first, last, right, ends, qends, pcounter, qcounter in PROVABLE:
        length = len(text) // 2
        p, q, pseed, qseed, *counters = provable(name, bits, short, int(text, 16), length)
        p, q, pseed, qseed = f"{p:x}", f"{q:x}", f"{pseed:0{2 * length}x}", f"{qseed:0{2 * length}x}"
        assert p.startswith(first) and p.endswith(last) and q == right and counters == [pcounter, qcounter]
        assert pseed.endswith(ends) and qseed.endswith(qends)
        rows.append({"kind": "provable", "hash": name, "seed": text, "p": p, "q": q, "pseed": pseed, "qseed": qseed,
                     "pgen_counter": pcounter, "qgen_counter": qcounter})
    for name, bits, short, text, index, first, last in BASES:
        length = len(text) // 2
        p, q, pseed, qseed, *_ = provable(name, bits, short, int(text, 16), length)
        seed = b"".join(number.to_bytes(length, "big") for number in (int(text, 16), pseed, qseed))
        g = f"{base(name, p, q, seed, index):x}"
        assert g.startswith(first) and g.endswith(last)
        rows.append({"kind": "base", "hash": name, "seed": seed.hex(), "index": index, "p": f"{p:x}", "q": f"{q:x}", "g": g})
    source = "NIST, CAVS 11.1, PQGVer.rsp (186-3dsatestvectors): some seeds; dsa_parameters.py made the numbers of them and compared them"
    with open(os.path.join(HERE, "dsa_parameters.json"), "w", encoding="utf-8") as file:
        json.dump({"source": source, "vectors": rows}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
