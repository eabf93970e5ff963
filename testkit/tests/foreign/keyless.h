/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 and random numbers of a module of the tests: right, unless orders say otherwise ("digest-fails", "digest-short",
   "digest-long", "digest-lingers", "stall-digest", "random-fails", "random-silent"). */
#pragma once
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include "orders.h"

enum { HASHES = 4096, DIGEST = 32, BLOCK = 64 };

/* FIPS 180-4, 6.2 */
struct hash {
    int active;
    uint32_t state[8];
    uint64_t length;
    unsigned char block[BLOCK];
};

static struct hash hashes[HASHES];

static uint32_t turned(uint32_t word, int by)
{
    return word >> by | word << (32 - by);
}

/* The first 32 bits of the fraction of a root of the primes: K is of the cube roots. */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static void compress(struct hash *hash)
{
    uint32_t w[64], v[8];
    for (int t = 0; t < 16; t++) {
        const unsigned char *at = hash->block + 4 * t;
        w[t] = (uint32_t) at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
    }
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = turned(w[t - 15], 7) ^ turned(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = turned(w[t - 2], 17) ^ turned(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
    memcpy(v, hash->state, sizeof v);
    for (int t = 0; t < 64; t++) {
        uint32_t s1 = turned(v[4], 6) ^ turned(v[4], 11) ^ turned(v[4], 25);
        uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + K[t] + w[t];
        uint32_t s0 = turned(v[0], 2) ^ turned(v[0], 13) ^ turned(v[0], 22);
        uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        hash->state[i] += v[i];
}

static void absorb(struct hash *hash, const unsigned char *data, size_t length)
{
    for (; length > 0; data++, length--) {
        hash->block[hash->length++ % BLOCK] = *data;
        if (hash->length % BLOCK == 0)
            compress(hash);
    }
}

static void squeeze(struct hash *hash, unsigned char *out)
{
    unsigned char bits[8];
    for (int i = 0; i < 8; i++)
        bits[i] = hash->length * 8 >> (56 - 8 * i);
    absorb(hash, (const unsigned char *) "\x80", 1);
    while (hash->length % BLOCK != BLOCK - 8)
        absorb(hash, (const unsigned char *) "", 1);
    absorb(hash, bits, 8);
    for (int i = 0; i < DIGEST; i++)
        out[i] = hash->state[i / 4] >> (24 - 8 * (i % 4));
}

static CK_RV digest_init(CK_SESSION_HANDLE session, CK_MECHANISM *mechanism)
{
    struct hash *hash = &hashes[session % HASHES];
    CK_RV rv = ordered_failure("digest-fails");
    if (rv == CKR_OK && hash->active)
        rv = CKR_OPERATION_ACTIVE;
    if (rv != CKR_OK)
        return rv;
    if (mechanism->mechanism != CKM_SHA256)
        return CKR_MECHANISM_INVALID;
    *hash = (struct hash) { 1, { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 }, 0, { 0 } };
    return CKR_OK;
}

static CK_RV digest_update(CK_SESSION_HANDLE session, CK_BYTE *data, CK_ULONG length)
{
    stall("digest");
    CK_RV rv = ordered_failure("digest-fails");
    if (ordered("digest-lingers"))
        return CKR_DEVICE_ERROR;
    if (rv == CKR_OK && !hashes[session % HASHES].active)
        rv = CKR_OPERATION_NOT_INITIALIZED;
    if (rv == CKR_OK)
        absorb(&hashes[session % HASHES], data, length);
    else
        hashes[session % HASHES].active = 0;
    return rv;
}

static CK_RV digest_final(CK_SESSION_HANDLE session, CK_BYTE *out, CK_ULONG *room)
{
    struct hash *hash = &hashes[session % HASHES];
    CK_RV rv = ordered_failure("digest-fails");
    if (rv == CKR_OK && !hash->active)
        rv = CKR_OPERATION_NOT_INITIALIZED;
    if (rv == CKR_OK && out && *room < DIGEST)
        rv = CKR_BUFFER_TOO_SMALL;
    else if (rv == CKR_OK && out)
        squeeze(hash, out);
    hash->active &= rv == CKR_BUFFER_TOO_SMALL || (rv == CKR_OK && !out);
    *room = ordered("digest-short") ? DIGEST - 1 : ordered("digest-long") ? 1UL << 40 : DIGEST;
    return rv;
}

static CK_RV digest(CK_SESSION_HANDLE session, CK_BYTE *data, CK_ULONG length, CK_BYTE *out, CK_ULONG *room)
{
    CK_RV rv = out ? digest_update(session, data, length) : CKR_OK;
    return rv == CKR_OK ? digest_final(session, out, room) : rv;
}

static CK_RV generate_random(CK_SESSION_HANDLE session, CK_BYTE *out, CK_ULONG length)
{
    (void) session;
    CK_RV rv = ordered_failure("random-fails");
    if (rv == CKR_OK && !ordered("random-silent") && getrandom(out, length, 0) != (ssize_t) length)
        rv = CKR_DEVICE_ERROR;
    return rv;
}

/* For a function list. */
#define KEYLESS .C_DigestInit = digest_init, .C_Digest = digest, .C_DigestUpdate = digest_update, .C_DigestFinal = digest_final, \
                .C_GenerateRandom = generate_random
