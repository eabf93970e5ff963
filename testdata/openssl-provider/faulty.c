// SPDX-License-Identifier: Apache-2.0
// What stays in mode `all` where the module, which the argument names, fails in the middle of something: no objects.
#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

static const char **fault;
static long *objects;

static void is(const char *what, int right) {
    if (!right) {
        fprintf(stderr, "%s\n", what);
        ERR_print_errors_fp(stderr);
        exit(1);
    }
}

int main(int count, char **arguments) {
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
    return 0;
}
