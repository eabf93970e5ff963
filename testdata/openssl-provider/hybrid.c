// SPDX-License-Identifier: Apache-2.0
// Keys of a hybrid group of TLS 1.3, as libssl uses them, and in every wrong way. Arguments: its name, lengths of what a client and a server send
// and of the secret. The exit status is how often an answer was not the expected one.
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int bad;
static size_t client, server, secret;
static unsigned char ours[128], theirs[128], sent[4096];

static void is(const char *what, long expected, long answer) {
    if (expected != answer) {
        fprintf(stderr, "%s: %ld, not %ld\n", what, answer, expected);
        ERR_print_errors_fp(stderr);
        bad++;
    }
    ERR_clear_error();
}

// A pair, or a key that is to be given the other side's public half.
static EVP_PKEY *make(const char *name, int pair) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, name, "provider=metaslot");
    EVP_PKEY *key = NULL;
    int good = (pair ? EVP_PKEY_keygen_init(context) : EVP_PKEY_paramgen_init(context)) == 1
        && EVP_PKEY_CTX_set_group_name(context, name) == 1
        && (pair ? EVP_PKEY_keygen(context, &key) : EVP_PKEY_paramgen(context, &key)) == 1;
    is("make a key", 1, good);
    EVP_PKEY_CTX_free(context);
    return key;
}

static EVP_PKEY *given(const char *name, const unsigned char *public, size_t length) {
    EVP_PKEY *key = make(name, 0);
    if (EVP_PKEY_set1_encoded_public_key(key, public, length) == 1)
        return key;
    EVP_PKEY_free(key);
    return NULL;
}

static int encapsulate(EVP_PKEY *key, size_t room) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    size_t length = 0, size = 0;
    int good = EVP_PKEY_encapsulate_init(context, NULL) == 1
        && EVP_PKEY_encapsulate(context, NULL, &length, NULL, &size) == 1 && length == server && size == secret
        && EVP_PKEY_encapsulate(context, sent, &(size_t){ room }, ours, &size) == 1 && size == secret;
    EVP_PKEY_CTX_free(context);
    return good;
}

static int decapsulate(EVP_PKEY *key, size_t length) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    size_t size = 0;
    int good = EVP_PKEY_decapsulate_init(context, NULL) == 1
        && EVP_PKEY_decapsulate(context, NULL, &size, sent, length) == 1 && size == secret
        && EVP_PKEY_decapsulate(context, theirs, &size, sent, length) == 1 && size == secret;
    EVP_PKEY_CTX_free(context);
    return good;
}

static int same(void) { return memcmp(ours, theirs, secret) == 0; }

// A child of the process that made the key.
static int in_a_child(EVP_PKEY *key) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        int good = decapsulate(key, server);
        EVP_PKEY_free(key);
        _exit(good);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int count, char **arguments) {
    if (count != 5)
        return 99;
    const char *name = arguments[1];
    client = strtoul(arguments[2], NULL, 10), server = strtoul(arguments[3], NULL, 10), secret = strtoul(arguments[4], NULL, 10);
    EVP_PKEY *many[100], *pair = make(name, 1), *other;
    unsigned char *public = NULL;
    is("length of the public keys", client, EVP_PKEY_get1_encoded_public_key(pair, &public));
    EVP_PKEY *peer = given(name, public, client);
    is("the same key", 1, EVP_PKEY_eq(pair, peer));
    is("encapsulate", 1, encapsulate(peer, server));
    is("decapsulate", 1, decapsulate(pair, server));
    is("one secret", 1, same());
    is("encapsulate for a pair that was made here", 1, encapsulate(pair, server) && decapsulate(pair, server) && same());
    is("too little room", 0, encapsulate(peer, server - 1));
    is("a ciphertext that is too short", 0, decapsulate(pair, server - 1));
    is("a public half decapsulates", 0, decapsulate(peer, server));
    is("a key without keys encapsulates", 0, encapsulate(other = make(name, 0), server));
    EVP_PKEY_free(other);
    is("a public key that is too short", 1, given(name, public, client - 1) == NULL);
    // Either half may be changed: that of ML-KEM then gives another secret, and no point is on a curve by chance.
    for (size_t place = 0; place < server; place += server - 1) {
        encapsulate(peer, server);
        sent[place] ^= 1;
        is("a changed ciphertext gives the secret", 0, decapsulate(pair, server) && same());
    }
    // RFC 8446, 4.2.8.2: TLS sends points in their uncompressed form only.
    if (name[0] == 'S') {
        encapsulate(peer, server);
        sent[0] = 6 | (sent[secret == 80 ? 96 : 64] & 1);
        is("a point in another form", 0, decapsulate(pair, server));
        memcpy(sent, public, client);
        sent[0] = 6 | (sent[secret == 80 ? 96 : 64] & 1);
        other = given(name, sent, client);
        is("a public key in another form", 0, encapsulate(other, server));
        EVP_PKEY_free(other);
    }
    // No key of ML-KEM, no point, and one of X25519 that every secret is the same with.
    memset(sent, 0, client);
    other = given(name, sent, client);
    is("public keys of zeros", 0, other != NULL && encapsulate(other, server));
    EVP_PKEY_free(other);
    is("a copy", 1, (other = EVP_PKEY_dup(pair)) != NULL && encapsulate(peer, server) && decapsulate(other, server) && same());
    EVP_PKEY_free(other);
    is("in a child", 0, in_a_child(pair));
    is("after a child", 1, encapsulate(peer, server) && decapsulate(pair, server) && same());
    for (int place = 0; place < 100; place++)
        many[place] = make(name, 1);
    for (int place = 0; place < 100; place++) {
        is("of many", 1, encapsulate(many[place], server) && decapsulate(many[place], server) && same());
        EVP_PKEY_free(many[place]);
    }
    OPENSSL_free(public);
    EVP_PKEY_free(peer);
    EVP_PKEY_free(pair);
    return bad;
}
