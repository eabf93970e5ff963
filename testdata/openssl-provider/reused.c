// SPDX-License-Identifier: Apache-2.0
// What the provider closes and makes anew in mode `all` where another part of the program has closed its sessions or destroyed a key, and the module,
// which the argument names, gives the numbers of sessions again: nothing of that part's, and no more than is gone.
#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <metaslot/pkcs11.h>

enum { MOST = 8 };

static const unsigned char key[32] = { 1 }, message[5000] = { 2 };
static EVP_MD *digest;
static EVP_CIPHER *cipher;
static CK_FUNCTION_LIST *list;
static CK_SLOT_ID slot;

static void is(const char *what, int right) {
    if (!right) {
        fprintf(stderr, "%s\n", what);
        ERR_print_errors_fp(stderr);
        exit(1);
    }
}

static int hashes(void) {
    unsigned char out[64];
    return EVP_Digest(message, 100, out, NULL, digest, NULL);
}

static int encrypts(EVP_CIPHER_CTX *context, size_t size) {
    unsigned char out[sizeof message + 16];
    int length;
    return EVP_CipherInit_ex2(context, NULL, NULL, key, 1, NULL) && EVP_CipherUpdate(context, out, &length, message, size)
        && EVP_CipherFinal_ex(context, out + length, &length);
}

static EVP_CIPHER_CTX *context_of(unsigned char first) {
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    unsigned char other[32] = { first };
    is("a key", EVP_CipherInit_ex2(context, cipher, other, key, 1, NULL));
    return context;
}

// By a key of the program's own, both of whose halves are session objects.
static int signs(EVP_PKEY *own) {
    unsigned char seal[100], hash[32] = { 3 };
    size_t length = sizeof seal;
    EVP_PKEY_CTX *one = EVP_PKEY_CTX_new_from_pkey(NULL, own, "provider=metaslot"), *other = EVP_PKEY_CTX_new_from_pkey(NULL, own, "provider=metaslot");
    int done = EVP_PKEY_sign_init(one) == 1 && EVP_PKEY_sign(one, seal, &length, hash, sizeof hash) == 1
        && EVP_PKEY_verify_init(other) == 1 && EVP_PKEY_verify(other, seal, length, hash, sizeof hash) == 1;
    EVP_PKEY_CTX_free(one);
    EVP_PKEY_CTX_free(other);
    return done;
}

// All sessions are closed, and the others have their numbers, but this one. `open`: of a digest that is in the middle.
static void take_over(CK_SESSION_HANDLE but, int running) {
    CK_SESSION_HANDLE theirs[MOST];
    CK_SESSION_INFO info;
    EVP_CIPHER_CTX *context = context_of(1);
    EVP_MD_CTX *long_one = EVP_MD_CTX_new();
    unsigned char out[64];
    EVP_PKEY *own = EVP_PKEY_Q_keygen(NULL, "provider=default", "EC", "P-256");
    is("hash and encrypt and sign", hashes() && encrypts(context, 100) && signs(own) && signs(own));
    is("begin a digest", EVP_DigestInit_ex2(long_one, digest, NULL) && (!running || EVP_DigestUpdate(long_one, message, sizeof message)));
    is("close all", list->C_CloseAllSessions(slot) == CKR_OK);
    for (int i = 0; i < MOST; i++)
        is("open", list->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &theirs[i]) == CKR_OK && theirs[i] == (CK_SESSION_HANDLE)i + 1);
    is("close one", list->C_CloseSession(but) == CKR_OK);
    if (running && !EVP_DigestFinal_ex(long_one, out, NULL))
        ERR_clear_error();
    EVP_MD_CTX_free(long_one);
    for (int round = 0; round < 3; round++)
        is("hash and encrypt again", hashes() && encrypts(context, 100) && encrypts(context, sizeof message) && signs(own));
    EVP_CIPHER_CTX_free(context);
    EVP_PKEY_free(own);
    for (int i = 0; i < MOST; i++) {
        int there = list->C_GetSessionInfo(theirs[i], &info) == CKR_OK;
        is("a session of another part is closed", there || theirs[i] == but);
    }
    is("close all", list->C_CloseAllSessions(slot) == CKR_OK);
}

static void destroy_one(CK_OBJECT_CLASS class, CK_ULONG all) {
    CK_SESSION_HANDLE session;
    CK_ATTRIBUTE wanted = { CKA_CLASS, &class, sizeof class };
    CK_OBJECT_HANDLE found[2];
    CK_ULONG count;
    is("open", list->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &session) == CKR_OK);
    is("search", list->C_FindObjectsInit(session, &wanted, 1) == CKR_OK && list->C_FindObjects(session, found, 2, &count) == CKR_OK);
    is("find all", count == all && list->C_FindObjectsFinal(session) == CKR_OK);
    is("destroy", list->C_DestroyObject(session, found[0]) == CKR_OK && list->C_CloseSession(session) == CKR_OK);
}

int main(int count, char **arguments) {
    void *module = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    CK_C_GetFunctionList get = NULL;
    CK_ULONG slots = 1;
    is("the module", module != NULL);
    *(void **)&get = dlsym(module, "C_GetFunctionList");
    long *opened = dlsym(module, "opened"), *created = dlsym(module, "created"), *destroyed = dlsym(module, "destroyed");
    int *keyless = dlsym(module, "keyless");
    digest = EVP_MD_fetch(NULL, "SHA256", "provider=metaslot");
    cipher = EVP_CIPHER_fetch(NULL, "AES-256-GCM", "provider=metaslot");
    is("the provider", digest != NULL && cipher != NULL && get(&list) == CKR_OK);
    is("a slot", (list->C_GetSlotList(CK_TRUE, &slot, &slots) & ~CKR_BUFFER_TOO_SMALL) == CKR_OK);
    for (int but = 1; but <= MOST; but++) {
        take_over(but, 0);
        take_over(but, 1);
    }

    EVP_CIPHER_CTX *contexts[] = { context_of(1), context_of(2) };
    is("encrypt", encrypts(contexts[0], 100) && encrypts(contexts[1], 100) && hashes());
    EVP_PKEY *own = EVP_PKEY_Q_keygen(NULL, "provider=default", "EC", "P-256");
    is("sign", signs(own) && signs(own));
    destroy_one(CKO_SECRET_KEY, 2);
    destroy_one(CKO_PRIVATE_KEY, 1);
    long before = *opened, keys = *created;
    is("encrypt by both", encrypts(contexts[0], 100) && encrypts(contexts[1], 100) && hashes());
    is("sign again", signs(own));
    is("two keys are made anew", *created == keys + 2);
    is("no session is opened for that but the one after a signature that failed", *opened <= before + 1);
    EVP_PKEY_free(own);

    // Something else that the module calls a key which is not there.
    keys = *created - *destroyed;
    *keyless = 1;
    for (int round = 0; round < 10; round++)
        is("no key", !encrypts(contexts[0], 100));
    ERR_clear_error();
    *keyless = 0;
    is("no key is left over", *created - *destroyed == keys);
    is("encrypt after that", encrypts(contexts[0], 100) && *created - *destroyed == keys);
    EVP_CIPHER_CTX_free(contexts[0]);
    EVP_CIPHER_CTX_free(contexts[1]);
    EVP_CIPHER_free(cipher);
    EVP_MD_free(digest);
    is("no error is left", ERR_peek_error() == 0);
    return 0;
}
