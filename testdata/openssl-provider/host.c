// SPDX-License-Identifier: Apache-2.0
// A program of OpenSSL whose keys are in a token, named by the arguments (URIs): threads with small stacks, children and theirs, library
// contexts of its own that come and go, an exit handler. Its exit status is how often something failed. It forks while no thread is in
// libcrypto, whose locks a child would inherit.
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/store.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 8, SIGNATURES = 30, THREADS = 8, CHILDREN = 6, CONTEXTS = 10, STACK = 128 * 1024 };

static EVP_PKEY *keys[MOST];
static int count;

// The last one of those that the URI names.
static EVP_PKEY *load(OSSL_LIB_CTX *library, const char *uri) {
    OSSL_STORE_CTX *store = OSSL_STORE_open_ex(uri, library, NULL, NULL, NULL, NULL, NULL, NULL);
    EVP_PKEY *key = NULL;
    while (store != NULL && !OSSL_STORE_eof(store)) {
        OSSL_STORE_INFO *found = OSSL_STORE_load(store);
        if (found == NULL)
            break;
        if (OSSL_STORE_INFO_get_type(found) == OSSL_STORE_INFO_PKEY) {
            EVP_PKEY_free(key);
            key = OSSL_STORE_INFO_get1_PKEY(found);
        }
        OSSL_STORE_INFO_free(found);
    }
    OSSL_STORE_close(store);
    return key;
}

// Signs and checks the signature; 1 where that fails.
static int fails(OSSL_LIB_CTX *library, EVP_PKEY *key) {
    unsigned char signature[1024], message[100];
    size_t length = sizeof signature;
    memset(message, 7, sizeof message);
    const char *hash = EVP_PKEY_is_a(key, "ED25519") ? NULL : "SHA256";
    EVP_MD_CTX *sign = EVP_MD_CTX_new(), *verify = EVP_MD_CTX_new();
    int good = EVP_DigestSignInit_ex(sign, NULL, hash, library, NULL, key, NULL) == 1
        && EVP_DigestSign(sign, signature, &length, message, sizeof message) == 1
        && EVP_DigestVerifyInit_ex(verify, NULL, hash, library, NULL, key, NULL) == 1
        && EVP_DigestVerify(verify, signature, length, message, sizeof message) == 1;
    EVP_MD_CTX_free(sign);
    EVP_MD_CTX_free(verify);
    if (!good)
        ERR_print_errors_fp(stderr);
    return !good;
}

static void *signs(void *unused) {
    (void)unused;
    long bad = 0;
    for (int i = 0; i < SIGNATURES; i++)
        bad += fails(NULL, keys[i % count]);
    return (void *)bad;
}

static void start(pthread_t *threads, int number) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    for (int i = 0; i < number; i++)
        if (pthread_create(&threads[i], &small, signs, NULL) != 0)
            abort();
}

static int joined(pthread_t *threads, int number) {
    long bad = 0;
    for (int i = 0; i < number; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        bad += (long)failed;
    }
    return (int)bad;
}

static int status_of(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    return status != 0;
}

static int child(void) {
    pid_t pid = fork();
    if (pid != 0)
        return status_of(pid);
    alarm(60);
    pthread_t threads[2];
    start(threads, 2);
    int bad = fails(NULL, keys[0]) + joined(threads, 2);
    // A child of its own, which leaves through the exit handlers.
    pid = fork();
    if (pid == 0)
        exit(fails(NULL, keys[count - 1]));
    _exit(bad + status_of(pid));
}

static void late(void) {
    if (fails(NULL, keys[0]))
        _exit(99);
}

int main(int argc, char **argv) {
    for (count = 0; count < argc - 1 && count < MOST; count++) {
        keys[count] = load(NULL, argv[count + 1]);
        if (keys[count] == NULL) {
            ERR_print_errors_fp(stderr);
            return 98;
        }
    }
    // After the library's own, and so before it is cleaned up.
    atexit(late);
    pthread_t threads[THREADS];
    int bad = 0;
    for (int i = 0; i < CHILDREN; i++) {
        start(threads, THREADS);
        bad += joined(threads, THREADS);
        bad += child();
    }
    for (int i = 0; i < CONTEXTS; i++) {
        OSSL_LIB_CTX *library = OSSL_LIB_CTX_new();
        bad += OSSL_LIB_CTX_load_config(library, getenv("OPENSSL_CONF")) != 1;
        EVP_PKEY *key = load(library, argv[1 + i % count]);
        bad += key == NULL || fails(library, key);
        EVP_PKEY_free(key);
        OSSL_LIB_CTX_free(library);
    }
    return bad + fails(NULL, keys[0]);
}
