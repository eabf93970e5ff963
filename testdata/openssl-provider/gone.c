// SPDX-License-Identifier: Apache-2.0
// What is done by the module in mode `all` after another part of the program has closed all sessions of the slot, or finalised the module, which the
// argument names: contexts that were there go on with their next message, and new ones begin.
#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char key[32] = { 1 }, message[5000] = { 2 };
static EVP_CIPHER *cipher, *plain;
static EVP_MD *digest;
static EVP_MAC *mac;

static void is(const char *what, int right) {
    if (!right) {
        fprintf(stderr, "%s\n", what);
        ERR_print_errors_fp(stderr);
        exit(1);
    }
}

static int encrypts(EVP_CIPHER_CTX *context) {
    unsigned char out[sizeof message + 16];
    int length;
    return EVP_CipherInit_ex2(context, NULL, NULL, key, 1, NULL) && EVP_CipherUpdate(context, out, &length, message, sizeof message)
        && EVP_CipherFinal_ex(context, out + length, &length);
}

static int authenticates(EVP_MAC_CTX *context) {
    unsigned char out[64];
    size_t length;
    return EVP_MAC_init(context, NULL, 0, NULL) && EVP_MAC_update(context, message, sizeof message)
        && EVP_MAC_final(context, out, &length, sizeof out);
}

static int hashes(void) {
    unsigned char out[64];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int done = EVP_Digest(message, 100, out, NULL, digest, NULL) && EVP_DigestInit_ex2(context, digest, NULL)
        && EVP_DigestUpdate(context, message, sizeof message) && EVP_DigestFinal_ex(context, out, NULL);
    EVP_MD_CTX_free(context);
    return done;
}

static void *works(void *ready) {
    EVP_CIPHER_CTX *contexts[] = { EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_new() };
    EVP_MAC_CTX *other = EVP_MAC_CTX_new(mac);
    OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string("digest", "SHA256", 0), OSSL_PARAM_END };
    is("a key of GCM", EVP_CipherInit_ex2(contexts[0], cipher, key, NULL, 1, NULL));
    is("a key of CBC", EVP_CipherInit_ex2(contexts[1], plain, key, NULL, 1, NULL));
    is("a key of HMAC", EVP_MAC_init(other, key, sizeof key, params));
    for (int round = 0; round < 100; round++) {
        is("hash", hashes());
        is("encrypt by GCM", encrypts(contexts[0]));
        is("encrypt by CBC", encrypts(contexts[1]));
        is("authenticate", authenticates(other));
        // Before the first round and after it no thread is in the module.
        if (round == 0) {
            pthread_barrier_wait(ready);
            pthread_barrier_wait(ready);
        }
    }
    EVP_CIPHER_CTX_free(contexts[0]);
    EVP_CIPHER_CTX_free(contexts[1]);
    EVP_MAC_CTX_free(other);
    return NULL;
}

int main(int count, char **arguments) {
    enum { THREADS = 6 };
    void *module = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    unsigned long (*close_all)(unsigned long), (*finalize)(void *), (*initialize)(void *), (*slots)(unsigned char, unsigned long *, unsigned long *);
    is("the module", module != NULL);
    *(void **)&close_all = dlsym(module, "C_CloseAllSessions");
    *(void **)&finalize = dlsym(module, "C_Finalize");
    *(void **)&initialize = dlsym(module, "C_Initialize");
    *(void **)&slots = dlsym(module, "C_GetSlotList");
    cipher = EVP_CIPHER_fetch(NULL, "AES-256-GCM", "provider=metaslot");
    plain = EVP_CIPHER_fetch(NULL, "AES-256-CBC", "provider=metaslot");
    digest = EVP_MD_fetch(NULL, "SHA256", "provider=metaslot");
    mac = EVP_MAC_fetch(NULL, "HMAC", "provider=metaslot");
    for (int what = 0; what < 3; what++) {
        pthread_t threads[THREADS];
        pthread_barrier_t ready;
        pthread_barrier_init(&ready, NULL, THREADS + 1);
        for (int i = 0; i < THREADS; i++)
            is("a thread", pthread_create(&threads[i], NULL, works, &ready) == 0);
        pthread_barrier_wait(&ready);
        unsigned long all[8], number = 8;
        is("slots", slots(1, all, &number) == 0);
        for (unsigned long i = 0; what == 0 && i < number; i++)
            is("close all", close_all(all[i]) == 0);
        is("finalise", what == 0 || finalize(NULL) == 0);
        is("initialise", what < 2 || initialize(NULL) == 0);
        pthread_barrier_wait(&ready);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&ready);
    }
    EVP_CIPHER_free(cipher);
    EVP_CIPHER_free(plain);
    EVP_MD_free(digest);
    EVP_MAC_free(mac);
    is("no error is left", ERR_peek_error() == 0);
    return 0;
}
