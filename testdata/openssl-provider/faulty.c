// SPDX-License-Identifier: Apache-2.0
// What stays in mode `all` where the module, which the argument names, fails in the middle of something: no objects, and no counter that is used twice.
#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char **fault;
static long *objects;

static void is(const char *what, int right) {
    if (!right) {
        fprintf(stderr, "%s\n", what);
        ERR_print_errors_fp(stderr);
        exit(1);
    }
}

// A part that fails is as one that never came.
static void counts_on(const char *properties, unsigned char *out) {
    static const unsigned char key[16] = { 1 }, iv[16] = { 2 }, zeros[100];
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, "AES-128-CTR", properties);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    unsigned char nothing[100];
    int length;
    is("CTR", cipher != NULL && EVP_CipherInit_ex2(context, cipher, key, iv, 1, NULL));
    for (int done = 0; done < 100; done += 5) {
        is("a part", EVP_CipherUpdate(context, out + done, &length, zeros, 5));
        *fault = "C_EncryptInit";
        is("a fault", strstr(properties, "default") || !EVP_CipherUpdate(context, nothing, &length, zeros, 40 + done));
        *fault = "";
    }
    ERR_clear_error();
    EVP_CIPHER_CTX_free(context);
    EVP_CIPHER_free(cipher);
}

int main(int count, char **arguments) {
    unsigned char ours[100], theirs[100];
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, "provider=metaslot", "EC", "P-256");
    void *module = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) : NULL;
    is("the module", key != NULL && module != NULL);
    fault = dlsym(module, "fault");
    objects = dlsym(module, "objects");
    EVP_PKEY_free(key);
    long before = *objects;
    for (int round = 0; round < 3; round++) {
        *fault = "C_GetAttributeValue";
        key = EVP_PKEY_Q_keygen(NULL, "provider=metaslot", "EC", "P-256");
        *fault = "";
        is("a key that is not shown", key == NULL && *objects == before);
    }
    ERR_clear_error();
    counts_on("provider=default", theirs);
    counts_on("provider=metaslot", ours);
    is("CTR after a fault", memcmp(ours, theirs, sizeof ours) == 0);
    return 0;
}
