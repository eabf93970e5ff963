// SPDX-License-Identifier: Apache-2.0
// What becomes of a token where another part of the program takes away what the provider has of a second one: `two MODULE URI URI`. The first URI names
// a key of the token that loses its sessions, its login or its key; the sessions of the other stay as they are, and both keys sign.
#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/store.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <metaslot/pkcs11.h>

static CK_FUNCTION_LIST *list;
static const char *uris[2];
static EVP_PKEY *keys[2];

static void is(const char *what, int right) {
    if (!right) {
        fprintf(stderr, "%s\n", what);
        ERR_print_errors_fp(stderr);
        exit(1);
    }
}

static EVP_PKEY *load(const char *uri) {
    OSSL_STORE_CTX *store = OSSL_STORE_open(uri, NULL, NULL, NULL, NULL);
    OSSL_STORE_INFO *info = store == NULL ? NULL : OSSL_STORE_load(store);
    EVP_PKEY *found = info == NULL ? NULL : OSSL_STORE_INFO_get1_PKEY(info);
    OSSL_STORE_INFO_free(info);
    OSSL_STORE_close(store);
    return found;
}

static int signs(EVP_PKEY *key) {
    unsigned char seal[512], hash[32] = { 3 };
    size_t length = sizeof seal;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    int done = EVP_PKEY_sign_init(context) == 1 && EVP_PKEY_sign(context, seal, &length, hash, sizeof hash) == 1
        && EVP_PKEY_verify_init(context) == 1 && EVP_PKEY_verify(context, seal, length, hash, sizeof hash) == 1;
    EVP_PKEY_CTX_free(context);
    return done;
}

static CK_ULONG sessions(CK_SLOT_ID slot) {
    CK_TOKEN_INFO info;
    is("a token", list->C_GetTokenInfo(slot, &info) == CKR_OK);
    return info.ulSessionCount;
}

static CK_SESSION_HANDLE opened(CK_SLOT_ID slot) {
    CK_SESSION_HANDLE session;
    is("open", list->C_OpenSession(slot, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session) == CKR_OK);
    return session;
}

static void close_all(CK_SLOT_ID slot) {
    is("close all", list->C_CloseAllSessions(slot) == CKR_OK);
}

static void log_out(CK_SLOT_ID slot) {
    CK_SESSION_HANDLE session = opened(slot);
    is("log out", list->C_Logout(session) == CKR_OK && list->C_CloseSession(session) == CKR_OK);
}

// The key gets another number.
static void copy_key(CK_SLOT_ID slot) {
    CK_SESSION_HANDLE session = opened(slot);
    CK_OBJECT_CLASS class = CKO_PRIVATE_KEY;
    CK_ATTRIBUTE wanted = { CKA_CLASS, &class, sizeof class };
    CK_OBJECT_HANDLE found, copy;
    CK_ULONG count;
    is("search", list->C_FindObjectsInit(session, &wanted, 1) == CKR_OK && list->C_FindObjects(session, &found, 1, &count) == CKR_OK && count == 1);
    is("copy", list->C_FindObjectsFinal(session) == CKR_OK && list->C_CopyObject(session, found, NULL, 0, &copy) == CKR_OK);
    is("destroy", list->C_DestroyObject(session, found) == CKR_OK && list->C_CloseSession(session) == CKR_OK);
}

static void take(const char *what, void (*away)(CK_SLOT_ID), CK_SLOT_ID slot, CK_SLOT_ID other, int loads) {
    is("sign before", signs(keys[0]) && signs(keys[1]));
    CK_ULONG before = sessions(other);
    away(slot);
    if (loads) {
        EVP_PKEY *again = load(uris[0]);
        is(what, again != NULL && signs(again));
        EVP_PKEY_free(again);
    }
    is(what, signs(keys[0]) && signs(keys[0]));
    if (sessions(other) != before)
        fprintf(stderr, "%s: %lu sessions of the other token, and there were %lu\n", what, sessions(other), before);
    is(what, sessions(other) == before && signs(keys[1]) && sessions(other) == before);
}

// The module gives numbers of sessions again: those of another part, which has them after the module was finalised, stay open.
static void numbers_again(CK_SLOT_ID other) {
    enum { THEIRS = 12 };
    CK_SESSION_HANDLE theirs[THEIRS];
    CK_SESSION_INFO info;
    is("sign before", signs(keys[0]) && signs(keys[1]));
    is("finalise", list->C_Finalize(NULL) == CKR_OK && signs(keys[0]));
    for (int i = 0; i < THEIRS; i++)
        theirs[i] = opened(other);
    is("sign by the other", signs(keys[1]) && signs(keys[1]) && signs(keys[0]));
    for (int i = 0; i < THEIRS; i++)
        is("a session of another part is open", list->C_GetSessionInfo(theirs[i], &info) == CKR_OK && list->C_CloseSession(theirs[i]) == CKR_OK);
}

int main(int count, char **arguments) {
    is("arguments", count == 4);
    void *module = dlopen(arguments[1], RTLD_NOW);
    CK_C_GetFunctionList get = NULL;
    is("the module", module != NULL);
    *(void **)&get = dlsym(module, "C_GetFunctionList");
    is("its functions", get(&list) == CKR_OK);
    for (int i = 0; i < 2; i++) {
        uris[i] = arguments[2 + i];
        keys[i] = load(uris[i]);
        is(uris[i], keys[i] != NULL);
    }
    CK_SLOT_ID slots[2];
    CK_ULONG number = 2;
    is("two slots", list->C_GetSlotList(CK_TRUE, slots, &number) == CKR_OK && number == 2);
    CK_SLOT_ID slot = slots[0], other = slots[1];
    if (getenv("SECOND") != NULL)
        slot = slots[1], other = slots[0];
    if (getenv("NUMBERS") != NULL) {
        for (int i = 0; i < 3; i++)
            numbers_again(other);
        return 0;
    }
    for (int loads = 0; loads < 2; loads++) {
        take("all sessions closed", close_all, slot, other, loads);
        take("logged out", log_out, slot, other, loads);
        take("another number", copy_key, slot, other, loads);
    }
    for (int again = 0; again < 2; again++) {
        is("finalise", list->C_Finalize(NULL) == CKR_OK && (!again || list->C_Initialize(NULL) == CKR_OK));
        is("sign after that", signs(keys[0]) && signs(keys[1]) && signs(keys[0]));
    }
    is("no session is left over", sessions(slot) <= 4 && sessions(other) <= 4);
    EVP_PKEY_free(keys[0]);
    EVP_PKEY_free(keys[1]);
    return 0;
}
