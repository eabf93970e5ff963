// SPDX-License-Identifier: Apache-2.0
// A module in front of the module NEXT. It passes every call on, and writes a line into the file LOG for each: the function, its
// code, and which mechanism and attributes it was given, as numbers. It has the lists of functions that NEXT has, of 2.40, 3.0
// and 3.2; compiled with CLASSIC it shows the first only. Other interfaces than the standard's are given out as they are.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <metaslot/pkcs11.h>

// What is passed to a function of PKCS#11 is a number or an address: a word each, which a function is called with as with any other.
typedef unsigned long W;
#define WORDS_1 W a
#define WORDS_2 WORDS_1, W b
#define WORDS_3 WORDS_2, W c
#define WORDS_4 WORDS_3, W d
#define WORDS_5 WORDS_4, W e
#define WORDS_6 WORDS_5, W f
#define WORDS_7 WORDS_6, W g
#define WORDS_8 WORDS_7, W h
#define WORDS_9 WORDS_8, W i
#define WORDS_10 WORDS_9, W j
#define PASSED_1 a
#define PASSED_2 PASSED_1, b
#define PASSED_3 PASSED_2, c
#define PASSED_4 PASSED_3, d
#define PASSED_5 PASSED_4, e
#define PASSED_6 PASSED_5, f
#define PASSED_7 PASSED_6, g
#define PASSED_8 PASSED_7, h
#define PASSED_9 PASSED_8, i
#define PASSED_10 PASSED_9, j

// What is written of a call beside its name and code.
struct seen {
    const CK_MECHANISM *mechanism;
    const CK_ATTRIBUTE *attributes[2];
    W counts[2];
};
#define NOTHING 0, {0, 0}, {0, 0}
#define MECHANISM(m) (void *)m, {0, 0}, {0, 0}
#define TEMPLATE(t, n) 0, {(void *)t, 0}, {n, 0}
#define MADE(m, t, n) (void *)m, {(void *)t, 0}, {n, 0}
#define BOTH(m, t, n, u, o) (void *)m, {(void *)t, (void *)u}, {n, o}

// Each function of the longest list, with the number of its words and what is seen of them.
#define FUNCTIONS \
    ROW(C_Initialize, 1, NOTHING) ROW(C_Finalize, 1, NOTHING) ROW(C_GetInfo, 1, NOTHING) \
    ROW(C_GetSlotList, 3, NOTHING) ROW(C_GetSlotInfo, 2, NOTHING) ROW(C_GetTokenInfo, 2, NOTHING) \
    ROW(C_GetMechanismList, 3, NOTHING) ROW(C_GetMechanismInfo, 3, NOTHING) ROW(C_InitToken, 4, NOTHING) \
    ROW(C_InitPIN, 3, NOTHING) ROW(C_SetPIN, 5, NOTHING) ROW(C_OpenSession, 5, NOTHING) \
    ROW(C_CloseSession, 1, NOTHING) ROW(C_CloseAllSessions, 1, NOTHING) ROW(C_GetSessionInfo, 2, NOTHING) \
    ROW(C_GetOperationState, 3, NOTHING) ROW(C_SetOperationState, 5, NOTHING) ROW(C_Login, 4, NOTHING) \
    ROW(C_Logout, 1, NOTHING) ROW(C_CreateObject, 4, TEMPLATE(b, c)) ROW(C_CopyObject, 5, TEMPLATE(c, d)) \
    ROW(C_DestroyObject, 2, NOTHING) ROW(C_GetObjectSize, 3, NOTHING) ROW(C_GetAttributeValue, 4, TEMPLATE(c, d)) \
    ROW(C_SetAttributeValue, 4, TEMPLATE(c, d)) ROW(C_FindObjectsInit, 3, TEMPLATE(b, c)) \
    ROW(C_FindObjects, 4, NOTHING) ROW(C_FindObjectsFinal, 1, NOTHING) ROW(C_EncryptInit, 3, MECHANISM(b)) \
    ROW(C_Encrypt, 5, NOTHING) ROW(C_EncryptUpdate, 5, NOTHING) ROW(C_EncryptFinal, 3, NOTHING) \
    ROW(C_DecryptInit, 3, MECHANISM(b)) ROW(C_Decrypt, 5, NOTHING) ROW(C_DecryptUpdate, 5, NOTHING) \
    ROW(C_DecryptFinal, 3, NOTHING) ROW(C_DigestInit, 2, MECHANISM(b)) ROW(C_Digest, 5, NOTHING) \
    ROW(C_DigestUpdate, 3, NOTHING) ROW(C_DigestKey, 2, NOTHING) ROW(C_DigestFinal, 3, NOTHING) \
    ROW(C_SignInit, 3, MECHANISM(b)) ROW(C_Sign, 5, NOTHING) ROW(C_SignUpdate, 3, NOTHING) \
    ROW(C_SignFinal, 3, NOTHING) ROW(C_SignRecoverInit, 3, MECHANISM(b)) ROW(C_SignRecover, 5, NOTHING) \
    ROW(C_VerifyInit, 3, MECHANISM(b)) ROW(C_Verify, 5, NOTHING) ROW(C_VerifyUpdate, 3, NOTHING) \
    ROW(C_VerifyFinal, 3, NOTHING) ROW(C_VerifyRecoverInit, 3, MECHANISM(b)) ROW(C_VerifyRecover, 5, NOTHING) \
    ROW(C_DigestEncryptUpdate, 5, NOTHING) ROW(C_DecryptDigestUpdate, 5, NOTHING) \
    ROW(C_SignEncryptUpdate, 5, NOTHING) ROW(C_DecryptVerifyUpdate, 5, NOTHING) ROW(C_GenerateKey, 5, MADE(b, c, d)) \
    ROW(C_GenerateKeyPair, 8, BOTH(b, c, d, e, f)) ROW(C_WrapKey, 6, MECHANISM(b)) \
    ROW(C_UnwrapKey, 8, MADE(b, f, g)) ROW(C_DeriveKey, 6, MADE(b, d, e)) ROW(C_SeedRandom, 3, NOTHING) \
    ROW(C_GenerateRandom, 3, NOTHING) ROW(C_GetFunctionStatus, 1, NOTHING) ROW(C_CancelFunction, 1, NOTHING) \
    ROW(C_WaitForSlotEvent, 3, NOTHING) ROW(C_LoginUser, 6, NOTHING) ROW(C_SessionCancel, 2, NOTHING) \
    ROW(C_MessageEncryptInit, 3, MECHANISM(b)) ROW(C_EncryptMessage, 9, NOTHING) \
    ROW(C_EncryptMessageBegin, 5, NOTHING) ROW(C_EncryptMessageNext, 8, NOTHING) \
    ROW(C_MessageEncryptFinal, 1, NOTHING) ROW(C_MessageDecryptInit, 3, MECHANISM(b)) \
    ROW(C_DecryptMessage, 9, NOTHING) ROW(C_DecryptMessageBegin, 5, NOTHING) ROW(C_DecryptMessageNext, 8, NOTHING) \
    ROW(C_MessageDecryptFinal, 1, NOTHING) ROW(C_MessageSignInit, 3, MECHANISM(b)) ROW(C_SignMessage, 7, NOTHING) \
    ROW(C_SignMessageBegin, 3, NOTHING) ROW(C_SignMessageNext, 7, NOTHING) ROW(C_MessageSignFinal, 1, NOTHING) \
    ROW(C_MessageVerifyInit, 3, MECHANISM(b)) ROW(C_VerifyMessage, 7, NOTHING) ROW(C_VerifyMessageBegin, 3, NOTHING) \
    ROW(C_VerifyMessageNext, 7, NOTHING) ROW(C_MessageVerifyFinal, 1, NOTHING) \
    ROW(C_EncapsulateKey, 8, MADE(b, d, e)) ROW(C_DecapsulateKey, 8, MADE(b, d, e)) \
    ROW(C_VerifySignatureInit, 5, MECHANISM(b)) ROW(C_VerifySignature, 3, NOTHING) \
    ROW(C_VerifySignatureUpdate, 3, NOTHING) ROW(C_VerifySignatureFinal, 1, NOTHING) \
    ROW(C_GetSessionValidationFlags, 3, NOTHING) ROW(C_AsyncComplete, 3, NOTHING) ROW(C_AsyncGetID, 3, NOTHING) \
    ROW(C_AsyncJoin, 5, NOTHING) ROW(C_WrapKeyAuthenticated, 8, MECHANISM(b)) \
    ROW(C_UnwrapKeyAuthenticated, 10, MADE(b, f, g))

static CK_FUNCTION_LIST_3_2 next;
// One for each version. Each list is the beginning of the next one, and so is each of these.
static CK_FUNCTION_LIST_3_2 lists[3];
static CK_INTERFACE interfaces[3];
static CK_VERSION versions[3] = {{2, 40}, {3, 0}, {3, 2}};
static const size_t sizes[3] = {sizeof(CK_FUNCTION_LIST), sizeof(CK_FUNCTION_LIST_3_0), sizeof(CK_FUNCTION_LIST_3_2)};
static CK_C_GetFunctionList next_list;
static CK_C_GetInterface next_interface;
static CK_C_GetInterfaceList next_interfaces;

// Opened each time: programs close what they do not know, and give up rights. Lines of several processes do not mix.
static void tell(const char *name, CK_RV code, struct seen seen) {
    int error = errno;
    char line[4096];
    size_t at = (size_t)snprintf(line, sizeof line, "%s %lx", name, code);
    if (seen.mechanism) at += (size_t)snprintf(line + at, sizeof line - at, " m%lx", seen.mechanism->mechanism);
    for (int half = 0; half < 2; half++)
        for (W one = 0; seen.attributes[half] && one < seen.counts[half] && at < sizeof line - 32; one++)
            at += (size_t)snprintf(line + at, sizeof line - at, " a%lx", seen.attributes[half][one].type);
    line[at++] = '\n';
    int log = open(LOG, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (log < 0 || write(log, line, at) != (ssize_t)at) fprintf(stderr, "the spy cannot write %s\n", LOG);
    if (log >= 0) close(log);
    errno = error;
}

#define ROW(name, count, ...) \
    static CK_RV spied_##name(WORDS_##count) { \
        CK_RV (*function)(WORDS_##count); \
        memcpy(&function, &next.name, sizeof function); \
        CK_RV code = function(PASSED_##count); \
        tell(#name, code, (struct seen){__VA_ARGS__}); \
        return code; \
    }
FUNCTIONS
#undef ROW

static void replace(void *function, const void *by) {
    static const void *none;
    if (memcmp(function, &none, sizeof none)) memcpy(function, by, sizeof none);
}

// The spy's functions in the place of those that NEXT has.
static void replace_all(CK_FUNCTION_LIST_3_2 *list) {
    const void *by;
#define ROW(name, count, ...) by = (const void *)spied_##name; replace(&list->name, &by);
    FUNCTIONS
#undef ROW
    by = (const void *)C_GetFunctionList; replace(&list->C_GetFunctionList, &by);
    by = (const void *)C_GetInterfaceList; replace(&list->C_GetInterfaceList, &by);
    by = (const void *)C_GetInterface; replace(&list->C_GetInterface, &by);
}

// Takes a list of NEXT's: the newest of them, taken last, is the one that calls go to.
static void take(int version, const void *list) {
    memcpy(&next, list, sizes[version]);
    memcpy(&lists[version], list, sizes[version]);
    replace_all(&lists[version]);
}

static void *symbol(void *module, const char *name) { return module ? dlsym(module, name) : NULL; }

static void start(void) {
    void *module = dlopen(NEXT, RTLD_NOW | RTLD_LOCAL);
    if (!module) fprintf(stderr, "the spy cannot load: %s\n", dlerror());
    *(void **)&next_list = symbol(module, "C_GetFunctionList");
    *(void **)&next_interface = symbol(module, "C_GetInterface");
    *(void **)&next_interfaces = symbol(module, "C_GetInterfaceList");
    CK_FUNCTION_LIST *classic;
    if (next_list && next_list(&classic) == CKR_OK) take(0, classic);
    for (int version = 0; version < 3 && next_interface; version++) {
        CK_INTERFACE *found;
        if (next_interface((CK_UTF8CHAR *)"PKCS 11", &versions[version], &found, 0) != CKR_OK) continue;
        take(version, found->pFunctionList);
        interfaces[version] = *found;
        interfaces[version].pFunctionList = &lists[version];
    }
}

static void started(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
}

// Which of the standard's interfaces it is; 3 for another one.
static int version_of(const CK_INTERFACE *interface) {
    int version = 3;
    if (!strcmp((const char *)interface->pInterfaceName, "PKCS 11"))
        for (version = 0; version < 3; version++)
            if (!memcmp(interface->pFunctionList, &versions[version], sizeof(CK_VERSION))) break;
    return version;
}

CK_RV C_GetFunctionList(CK_FUNCTION_LIST **list) {
    started();
    CK_RV code = next_list ? next_list(list) : CKR_GENERAL_ERROR;
    if (code == CKR_OK) *list = (CK_FUNCTION_LIST *)&lists[0];
    tell("C_GetFunctionList", code, (struct seen){NOTHING});
    return code;
}

// Without a name to be found by, a program does as with an older module.
#ifdef CLASSIC
#define INTERFACES __attribute__((visibility("hidden")))
#else
#define INTERFACES
#endif

INTERFACES CK_RV C_GetInterfaceList(CK_INTERFACE *list, CK_ULONG *count) {
    started();
    CK_RV code = next_interfaces ? next_interfaces(list, count) : CKR_FUNCTION_NOT_SUPPORTED;
    for (CK_ULONG at = 0; code == CKR_OK && list && at < *count; at++) {
        int version = version_of(&list[at]);
        if (version < 3) list[at] = interfaces[version];
    }
    tell("C_GetInterfaceList", code, (struct seen){NOTHING});
    return code;
}

INTERFACES CK_RV C_GetInterface(CK_UTF8CHAR *name, CK_VERSION *version, CK_INTERFACE **found, CK_FLAGS flags) {
    started();
    CK_RV code = next_interface ? next_interface(name, version, found, flags) : CKR_FUNCTION_NOT_SUPPORTED;
    if (code == CKR_OK) {
        int standard = version_of(*found);
        if (standard < 3) *found = &interfaces[standard];
    }
    tell("C_GetInterface", code, (struct seen){NOTHING});
    return code;
}
