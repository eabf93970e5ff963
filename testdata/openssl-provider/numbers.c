// SPDX-License-Identifier: Apache-2.0
// A PKCS#11 module that is another one, which METASLOT_MODULE names, but gives a session the lowest number that no other one has. It counts in `opened`
// and `created` what it has made, and says that no key is there where `keyless` is set.
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <metaslot/pkcs11.h>

enum { MOST = 200 };

static CK_FUNCTION_LIST ours, *theirs;
static CK_SESSION_HANDLE sessions[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
long opened, created, destroyed;
int keyless;

static CK_SESSION_HANDLE real(CK_SESSION_HANDLE session) {
    pthread_mutex_lock(&lock);
    CK_SESSION_HANDLE found = session < MOST ? sessions[session] : 0;
    pthread_mutex_unlock(&lock);
    return found;
}

#define IN_SESSION(name, parameters, arguments) \
    static CK_RV name parameters { return theirs->C_##name arguments; }

IN_SESSION(GetSessionInfo, (CK_SESSION_HANDLE s, CK_SESSION_INFO_PTR info), (real(s), info))
IN_SESSION(FindObjectsInit, (CK_SESSION_HANDLE s, CK_ATTRIBUTE_PTR template, CK_ULONG count), (real(s), template, count))
IN_SESSION(FindObjects, (CK_SESSION_HANDLE s, CK_OBJECT_HANDLE_PTR out, CK_ULONG most, CK_ULONG_PTR count), (real(s), out, most, count))
IN_SESSION(FindObjectsFinal, (CK_SESSION_HANDLE s), (real(s)))
IN_SESSION(DigestInit, (CK_SESSION_HANDLE s, CK_MECHANISM_PTR mechanism), (real(s), mechanism))
IN_SESSION(Digest, (CK_SESSION_HANDLE s, CK_BYTE_PTR in, CK_ULONG length, CK_BYTE_PTR out, CK_ULONG_PTR room), (real(s), in, length, out, room))
IN_SESSION(DigestUpdate, (CK_SESSION_HANDLE s, CK_BYTE_PTR in, CK_ULONG length), (real(s), in, length))
IN_SESSION(DigestFinal, (CK_SESSION_HANDLE s, CK_BYTE_PTR out, CK_ULONG_PTR room), (real(s), out, room))
IN_SESSION(GetOperationState, (CK_SESSION_HANDLE s, CK_BYTE_PTR out, CK_ULONG_PTR room), (real(s), out, room))
IN_SESSION(Encrypt, (CK_SESSION_HANDLE s, CK_BYTE_PTR in, CK_ULONG length, CK_BYTE_PTR out, CK_ULONG_PTR room), (real(s), in, length, out, room))

IN_SESSION(SignInit, (CK_SESSION_HANDLE s, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key), (real(s), mechanism, key))
IN_SESSION(Sign, (CK_SESSION_HANDLE s, CK_BYTE_PTR in, CK_ULONG length, CK_BYTE_PTR out, CK_ULONG_PTR room), (real(s), in, length, out, room))
IN_SESSION(VerifyInit, (CK_SESSION_HANDLE s, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key), (real(s), mechanism, key))
IN_SESSION(Verify, (CK_SESSION_HANDLE s, CK_BYTE_PTR in, CK_ULONG length, CK_BYTE_PTR out, CK_ULONG room), (real(s), in, length, out, room))
IN_SESSION(GetAttributeValue, (CK_SESSION_HANDLE s, CK_OBJECT_HANDLE object, CK_ATTRIBUTE_PTR template, CK_ULONG count), (real(s), object, template, count))

IN_SESSION(Login, (CK_SESSION_HANDLE s, CK_USER_TYPE user, CK_UTF8CHAR_PTR pin, CK_ULONG length), (real(s), user, pin, length))

static CK_RV EncryptInit(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key) {
    return keyless ? CKR_KEY_HANDLE_INVALID : theirs->C_EncryptInit(real(session), mechanism, key);
}

static CK_RV CreateObject(CK_SESSION_HANDLE session, CK_ATTRIBUTE_PTR template, CK_ULONG count, CK_OBJECT_HANDLE_PTR object) {
    CK_RV code = theirs->C_CreateObject(real(session), template, count, object);
    created += code == CKR_OK;
    return code;
}

static CK_RV DestroyObject(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE object) {
    CK_RV code = theirs->C_DestroyObject(real(session), object);
    destroyed += code == CKR_OK;
    return code;
}

static CK_RV OpenSession(CK_SLOT_ID slot, CK_FLAGS flags, CK_VOID_PTR application, CK_NOTIFY notify, CK_SESSION_HANDLE_PTR session) {
    CK_SESSION_HANDLE made, number = 1;
    CK_RV code = theirs->C_OpenSession(slot, flags, application, notify, &made);
    pthread_mutex_lock(&lock);
    while (number < MOST - 1 && sessions[number] != 0)
        number++;
    if (code == CKR_OK) {
        sessions[number] = made;
        *session = number;
        opened++;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static CK_RV CloseSession(CK_SESSION_HANDLE session) {
    CK_RV code = theirs->C_CloseSession(real(session));
    pthread_mutex_lock(&lock);
    if (code == CKR_OK)
        sessions[session] = 0;
    pthread_mutex_unlock(&lock);
    return code;
}

static CK_RV CloseAllSessions(CK_SLOT_ID slot) {
    for (int number = 0; number < MOST; number++)
        sessions[number] = 0;
    return theirs->C_CloseAllSessions(slot);
}

static CK_RV Finalize(CK_VOID_PTR reserved) {
    for (int number = 0; number < MOST; number++)
        sessions[number] = 0;
    return theirs->C_Finalize(reserved);
}

CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR list) {
    void *module = dlopen(getenv("METASLOT_MODULE"), RTLD_NOW);
    CK_C_GetFunctionList get = NULL;
    if (module == NULL || list == NULL)
        return CKR_ARGUMENTS_BAD;
    *(void **)&get = dlsym(module, "C_GetFunctionList");
    CK_RV code = get == NULL ? CKR_GENERAL_ERROR : get(&theirs);
    if (code != CKR_OK)
        return code;
    ours = *theirs;
#define OURS(name) ours.C_##name = name;
    OURS(GetSessionInfo) OURS(FindObjectsInit) OURS(FindObjects) OURS(FindObjectsFinal) OURS(DigestInit) OURS(Digest) OURS(DigestUpdate)
    OURS(DigestFinal) OURS(GetOperationState) OURS(Encrypt) OURS(EncryptInit) OURS(CreateObject) OURS(DestroyObject) OURS(OpenSession)
    OURS(CloseSession) OURS(CloseAllSessions) OURS(SignInit) OURS(Sign) OURS(VerifyInit) OURS(Verify) OURS(GetAttributeValue) OURS(Login)
    OURS(Finalize)
    *list = &ours;
    return CKR_OK;
}
