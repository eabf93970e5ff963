// SPDX-License-Identifier: Apache-2.0
// What stays in mode `all` where the module, which the argument names, fails in the middle of something: no objects, and no counter that is used twice.
#include <dlfcn.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
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

// A key whose point, in its hybrid form, the module cannot look at yet: it stays as it was given, and verifies later if it is on the curve.
static void looks_later(int wrong) {
    unsigned char point[65], given[65], seal[100], digest[32] = { 1 };
    size_t length = 0, sealed = sizeof seal;
    BIGNUM *number = NULL;
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, "provider=default", "EC", "P-256"), *other = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", "provider=metaslot");
    is("a key", EVP_PKEY_get_octet_string_param(key, "pub", point, sizeof point, &length) && length == sizeof point);
    is("its number", EVP_PKEY_get_bn_param(key, "priv", &number));
    point[0] = 6 + point[64] % 2;
    point[64] ^= wrong ? 2 : 0;
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    OSSL_PARAM_BLD_push_utf8_string(build, "group", "P-256", 0);
    OSSL_PARAM_BLD_push_octet_string(build, "pub", point, sizeof point);
    OSSL_PARAM_BLD_push_BN(build, "priv", number);
    OSSL_PARAM *parts = OSSL_PARAM_BLD_to_param(build);
    *fault = "C_CreateObject";
    is("a key that the module does not take yet", EVP_PKEY_fromdata_init(context) == 1 && EVP_PKEY_fromdata(context, &other, EVP_PKEY_KEYPAIR, parts) == 1);
    *fault = "";
    ERR_clear_error();
    is("the point", EVP_PKEY_get_octet_string_param(other, "pub", given, sizeof given, &length) && length == sizeof point);
    is("as it was given", memcmp(given, point, sizeof point) == 0);
    EVP_PKEY_CTX *signs = EVP_PKEY_CTX_new_from_pkey(NULL, other, "provider=metaslot"), *verifies = EVP_PKEY_CTX_dup(signs);
    is("sign", EVP_PKEY_sign_init(signs) == 1 && EVP_PKEY_sign(signs, seal, &sealed, digest, sizeof digest) == 1);
    is("verify", EVP_PKEY_verify_init(verifies) == 1 && (EVP_PKEY_verify(verifies, seal, sealed, digest, sizeof digest) == 1) == !wrong);
    ERR_clear_error();
    EVP_PKEY_CTX_free(verifies);
    EVP_PKEY_CTX_free(signs);
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(other);
    EVP_PKEY_free(key);
    OSSL_PARAM_free(parts);
    OSSL_PARAM_BLD_free(build);
    BN_free(number);
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
    looks_later(0);
    // What the module was asked about the curve has been counted.
    before = *objects;
    looks_later(1);
    looks_later(0);
    is("no object is left over", *objects == before);
    counts_on("provider=default", theirs);
    counts_on("provider=metaslot", ours);
    is("CTR after a fault", memcmp(ours, theirs, sizeof ours) == 0);
    return 0;
}
