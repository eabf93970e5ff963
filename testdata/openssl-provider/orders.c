// SPDX-License-Identifier: Apache-2.0
// Ciphers and MACs of mode `all` beside OpenSSL's own, by calls in random orders: whatever is begun, copied, changed or ended when, both answer the same.
// Left out is what OpenSSL does not define: a direction that changes without a key, parts of blocks in their place, a message after its end.
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 300, STEPS = 40, ROOM = 70000 };

static const char *const providers[] = { "provider=metaslot", "provider=default" };
static unsigned char input[ROOM], outputs[2][ROOM + 100];
static char history[STEPS * 40];
static const char *with;
static uint64_t seed;

static void is(const char *what, int right) {
    if (!right) {
        fprintf(stderr, "%s: %s after%s\n", with, what, history);
        ERR_print_errors_fp(stderr);
        exit(1);
    }
}

static size_t chance(size_t below) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (size_t)(seed % below);
}

static void fill(unsigned char *at, size_t length) {
    for (size_t i = 0; i < length; i++)
        at[i] = (unsigned char)chance(256);
}

static void remember(const char *call, size_t number) {
    size_t length = strlen(history);
    snprintf(history + length, sizeof history - length, " %s %zu,", call, number);
}

// What both have answered, how much came out, and what.
static int same(const int *answers, const int *lengths) {
    is("the same answer", (answers[0] > 0) == (answers[1] > 0));
    is("as much", answers[0] <= 0 || lengths[0] == lengths[1]);
    is("the same bytes", answers[0] <= 0 || lengths[0] <= 0 || memcmp(outputs[0], outputs[1], (size_t)lengths[0]) == 0);
    ERR_clear_error();
    return answers[0] > 0;
}

// Whether it may go on.
static int cipher_step(EVP_CIPHER *const *ciphers, EVP_CIPHER_CTX **contexts, size_t call, int *forward) {
    unsigned char key[64], iv[16];
    int answers[2] = { 1, 1 }, lengths[2] = { 0, 0 }, mode = EVP_CIPHER_get_mode(ciphers[0]), block = EVP_CIPHER_get_block_size(ciphers[0]);
    int strict = mode == EVP_CIPH_XTS_MODE || mode == EVP_CIPH_WRAP_MODE, turned = chance(3) == 0;
    int named = call == 9 || chance(6) == 0, keyed = call == 9 || strict || turned || chance(2), has_iv = chance(3) > 0, whole = call == 6;
    size_t length = whole ? 16 * chance(5) + (block > 1 ? 0 : chance(16)) : chance(4) == 0 ? 16 * chance(3) : chance(chance(8) ? 50 : 5000);
    const int in_place = block == 1 && chance(4) == 0;
    fill(key, sizeof key);
    fill(iv, sizeof iv);
    fill(input, length);
    *forward ^= (call < 2 || call == 9) && turned;
    remember(call < 2 || call == 9 ? "begin" : call < 6 ? "update" : whole ? "whole" : call == 7 ? "end" : "copy and padding", length);
    for (int i = 0; i < 2; i++) {
        EVP_CIPHER_CTX *copy;
        switch (call) {
        case 0: case 1: case 9:
            answers[i] = EVP_CipherInit_ex2(contexts[i], named ? ciphers[i] : NULL, keyed ? key : NULL, has_iv ? iv : NULL, *forward, NULL);
            break;
        case 6:
            if (mode == EVP_CIPH_WRAP_MODE)
                break;
            lengths[i] = answers[i] = EVP_Cipher(contexts[i], outputs[i], input, (unsigned)length);
            answers[i]++;
            break;
        case 7:
            answers[i] = EVP_CipherFinal_ex(contexts[i], outputs[i], &lengths[i]);
            break;
        case 8:
            copy = EVP_CIPHER_CTX_new();
            is("a copy", EVP_CIPHER_CTX_copy(copy, contexts[i]) && EVP_CIPHER_CTX_set_padding(copy, turned));
            EVP_CIPHER_CTX_free(contexts[i]);
            contexts[i] = copy;
            lengths[i] = EVP_CIPHER_CTX_get_iv_length(copy);
            is("an IV", EVP_CIPHER_CTX_get_updated_iv(copy, outputs[i], 16) && EVP_CIPHER_CTX_get_num(copy) < 16);
            break;
        default:
            memcpy(outputs[i], input, length);
            answers[i] = EVP_CipherUpdate(contexts[i], outputs[i], &lengths[i], in_place ? outputs[i] : input, (int)length);
        }
    }
    // Of wrapped keys OpenSSL 4.0 takes one in each message.
    return (same(answers, lengths) && (mode != EVP_CIPH_WRAP_MODE || call < 2 || call > 5)) || call < 2;
}

static void ciphers(const char *name) {
    EVP_CIPHER *both[2];
    with = name;
    for (int i = 0; i < 2; i++)
        is("a cipher", (both[i] = EVP_CIPHER_fetch(NULL, name, providers[i])) != NULL);
    for (int round = 0; round < ROUNDS; round++) {
        EVP_CIPHER_CTX *contexts[] = { EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_new() };
        int forward = (int)chance(2), goes_on = 1;
        history[0] = 0;
        for (int i = 0; i < 2; i++)
            EVP_CIPHER_CTX_set_flags(contexts[i], EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
        for (int step = 0; step < STEPS && goes_on; step++)
            goes_on = cipher_step(both, contexts, step == 0 ? 9 : chance(9), &forward);
        for (int i = 0; i < 2; i++)
            EVP_CIPHER_CTX_free(contexts[i]);
    }
    for (int i = 0; i < 2; i++)
        EVP_CIPHER_free(both[i]);
}

static int mac_step(EVP_MAC_CTX **contexts, size_t call, const char *parameter, const char *value, size_t key_length) {
    unsigned char key[200], iv[12];
    int answers[2] = { 1, 1 }, lengths[2] = { 0, 0 }, keyed = call == 7 || key_length > 0 || chance(2);
    size_t length = chance(3) ? chance(300) : 65530 + chance(12), room = chance(4) ? 64 : chance(64), made;
    fill(key, sizeof key);
    fill(iv, sizeof iv);
    fill(input, 300);
    key_length = key_length > 0 ? key_length : chance(sizeof key);
    remember(call == 7 ? "begin" : call < 4 ? "update" : call == 4 ? "copy" : call == 5 ? "length" : "end", call == 6 ? room : length);
    for (int i = 0; i < 2; i++) {
        OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string(parameter, (char *)value, 0),
            OSSL_PARAM_construct_utf8_string("properties", (char *)providers[i], 0),
            OSSL_PARAM_construct_octet_string("iv", iv, sizeof iv), OSSL_PARAM_construct_end() };
        EVP_MAC_CTX *copy;
        if (strcmp(parameter, "digest") == 0)
            params[2] = OSSL_PARAM_construct_end();
        switch (call) {
        case 7:
            answers[i] = EVP_MAC_init(contexts[i], keyed ? key : NULL, keyed ? key_length : 0, params);
            break;
        case 4:
            is("a copy", (copy = EVP_MAC_CTX_dup(contexts[i])) != NULL);
            EVP_MAC_CTX_free(contexts[i]);
            contexts[i] = copy;
            break;
        case 5:
            outputs[i][0] = (unsigned char)EVP_MAC_CTX_get_mac_size(contexts[i]);
            outputs[i][1] = (unsigned char)EVP_MAC_CTX_get_block_size(contexts[i]);
            lengths[i] = 2;
            break;
        case 6:
            answers[i] = EVP_MAC_final(contexts[i], outputs[i], &made, room);
            lengths[i] = (int)made;
            break;
        default:
            answers[i] = EVP_MAC_update(contexts[i], input, length);
        }
    }
    return same(answers, lengths);
}

static void macs(const char *name, const char *parameter, const char *value, size_t key_length) {
    EVP_MAC *both[2];
    with = name;
    for (int i = 0; i < 2; i++)
        is("a MAC", (both[i] = EVP_MAC_fetch(NULL, name, providers[i])) != NULL);
    for (int round = 0; round < ROUNDS / 3; round++) {
        EVP_MAC_CTX *contexts[] = { EVP_MAC_CTX_new(both[0]), EVP_MAC_CTX_new(both[1]) };
        size_t call = 7;
        history[0] = 0;
        for (int step = 0; step < STEPS && mac_step(contexts, call, parameter, value, key_length); step++)
            call = call == 6 ? 7 : chance(8);
        for (int i = 0; i < 2; i++)
            EVP_MAC_CTX_free(contexts[i]);
    }
    for (int i = 0; i < 2; i++)
        EVP_MAC_free(both[i]);
}

// GCM has an IV made for a message that is encrypted and was given none; another length of it wants one that is given.
static void without_an_iv(void) {
    unsigned char key[16] = { 1 }, iv[12], tag[16], sealed[20];
    EVP_CIPHER *gcm = EVP_CIPHER_fetch(NULL, "AES-128-GCM", providers[0]);
    with = "AES-128-GCM without an IV";
    history[0] = 0;
    for (int i = 0; i < 2; i++) {
        EVP_CIPHER *other = EVP_CIPHER_fetch(NULL, "AES-128-GCM", providers[i]);
        EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
        int length;
        is("a key", EVP_CipherInit_ex2(context, other, key, NULL, 1, NULL));
        is("a message", EVP_CipherUpdate(context, NULL, &length, input, 10) && EVP_CipherUpdate(context, sealed, &length, input, 20));
        is("its end", EVP_CipherFinal_ex(context, outputs[0], &length) && EVP_CIPHER_CTX_get_updated_iv(context, iv, sizeof iv));
        is("its tag", EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) > 0 && !EVP_CipherUpdate(context, outputs[0], &length, input, 20));
        is("its opening", EVP_CipherInit_ex2(context, i == 0 ? gcm : other, key, iv, 0, NULL) && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, tag) > 0);
        is("the rest", EVP_CipherUpdate(context, NULL, &length, input, 10) && EVP_CipherUpdate(context, outputs[0], &length, sealed, 20));
        is("the same", EVP_CipherFinal_ex(context, outputs[1], &length) && memcmp(outputs[0], input, 20) == 0);
        is("none is made to open by", EVP_CipherInit_ex2(context, other, key, NULL, 0, NULL) && !EVP_CipherUpdate(context, outputs[0], &length, input, 20));
        is("an IV", EVP_CipherInit_ex2(context, other, key, iv, 1, NULL) && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, 15, NULL) > 0);
        is("of another length", !EVP_CipherUpdate(context, outputs[0], &length, input, 20));
        ERR_clear_error();
        EVP_CIPHER_CTX_free(context);
        EVP_CIPHER_free(other);
    }
    EVP_CIPHER_free(gcm);
}

int main(void) {
    static const char *const names[] = { "AES-128-CBC", "AES-256-ECB", "AES-128-CTR", "AES-192-CFB", "AES-128-CFB8", "AES-256-CFB1", "AES-256-OFB", "AES-128-XTS", "AES-256-WRAP", "AES-128-WRAP-PAD" };
    seed = 88172645463325252U;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ciphers(names[i]);
    macs("HMAC", "digest", "SHA256", 0);
    macs("HMAC", "digest", "SHA3-384", 0);
    macs("CMAC", "cipher", "AES-128-CBC", 16);
    macs("GMAC", "cipher", "AES-256-GCM", 32);
    without_an_iv();
    return 0;
}
