// SPDX-License-Identifier: Apache-2.0
// A module with two keys that forgets everything while two threads sign, once, when there is a file "anew": the thread that begins
// with the first key comes back from C_SignInit when another one, for whom the module has been initialised again, has begun with the
// second key, in a session of the same number; and it signs first.
#include <pthread.h>
#include <string.h>

#include "orders.h"

enum { SESSIONS = 64, MODULUS = 256, KEYS = 2, PATIENCE_MS = 20000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int initialized;
static struct {
    int open;
    CK_ULONG searched;
    CK_ULONG key;
} sessions[SESSIONS];
// The second of the two threads, from when it has begun until the first one has signed.
static pthread_t second;
static int second_waits, first_waits;

static int hold(void)
{
    return pthread_mutex_lock(&lock);
}

static void let_go(int *held)
{
    *held = pthread_mutex_unlock(&lock);
}

#define HOLD __attribute__((cleanup(let_go), unused)) int held = hold()

// Waits, without the lock, while `what` is so.
static void wait_while(const int *what)
{
    for (int ms = 0; *what && ms < PATIENCE_MS; ms++) {
        pthread_mutex_unlock(&lock);
        usleep(1000);
        pthread_mutex_lock(&lock);
    }
}

static CK_RV state(CK_SESSION_HANDLE session)
{
    if (!initialized)
        return CKR_CRYPTOKI_NOT_INITIALIZED;
    return session < SESSIONS && sessions[session].open ? CKR_OK : CKR_SESSION_HANDLE_INVALID;
}

static CK_RV initialize(void *args)
{
    HOLD;
    (void) args;
    if (initialized)
        return CKR_CRYPTOKI_ALREADY_INITIALIZED;
    initialized = 1;
    memset(sessions, 0, sizeof sessions);
    return CKR_OK;
}

static CK_RV finalize(void *reserved)
{
    HOLD;
    (void) reserved;
    initialized = 0;
    return CKR_OK;
}

static CK_RV slot_list(CK_BBOOL present, CK_SLOT_ID *list, CK_ULONG *count)
{
    HOLD;
    (void) present;
    if (!initialized)
        return CKR_CRYPTOKI_NOT_INITIALIZED;
    if (list)
        list[0] = 0;
    *count = 1;
    return CKR_OK;
}

static CK_RV slot_info(CK_SLOT_ID slot, CK_SLOT_INFO *info)
{
    (void) slot;
    memset(info, ' ', sizeof *info);
    return CKR_OK;
}

static CK_RV token_info(CK_SLOT_ID slot, CK_TOKEN_INFO *info)
{
    (void) slot;
    memset(info, ' ', sizeof *info);
    info->label[0] = 'a';
    info->flags = CKF_TOKEN_INITIALIZED;
    return CKR_OK;
}

static CK_RV mechanism_list(CK_SLOT_ID slot, CK_MECHANISM_TYPE *list, CK_ULONG *count)
{
    (void) slot;
    if (list)
        list[0] = CKM_SHA256_RSA_PKCS;
    *count = 1;
    return CKR_OK;
}

static CK_RV mechanism_info(CK_SLOT_ID slot, CK_MECHANISM_TYPE mechanism, CK_MECHANISM_INFO *info)
{
    (void) slot, (void) mechanism;
    *info = (CK_MECHANISM_INFO) { 2048, 4096, CKF_SIGN };
    return CKR_OK;
}

static CK_RV open_session(CK_SLOT_ID slot, CK_FLAGS flags, void *app, CK_NOTIFY notify, CK_SESSION_HANDLE *out)
{
    HOLD;
    (void) slot, (void) flags, (void) app, (void) notify;
    if (!initialized)
        return CKR_CRYPTOKI_NOT_INITIALIZED;
    CK_SESSION_HANDLE at = 1;
    while (at < SESSIONS - 1 && sessions[at].open)
        at++;
    memset(&sessions[at], 0, sizeof sessions[at]);
    sessions[at].open = 1;
    *out = at;
    return CKR_OK;
}

static CK_RV session_info(CK_SESSION_HANDLE session, CK_SESSION_INFO *info)
{
    HOLD;
    memset(info, 0, sizeof *info);
    return state(session);
}

static CK_RV close_session(CK_SESSION_HANDLE session)
{
    HOLD;
    CK_RV rv = state(session);
    if (rv == CKR_OK)
        sessions[session].open = 0;
    return rv;
}

static CK_RV find_init(CK_SESSION_HANDLE session, CK_ATTRIBUTE *template, CK_ULONG count)
{
    HOLD;
    (void) template, (void) count;
    CK_RV rv = state(session);
    if (rv == CKR_OK)
        sessions[session].searched = 0;
    return rv;
}

static CK_RV find(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE *list, CK_ULONG room, CK_ULONG *count)
{
    HOLD;
    CK_RV rv = state(session);
    for (*count = 0; rv == CKR_OK && *count < room && sessions[session].searched < KEYS; ++*count)
        list[*count] = ++sessions[session].searched;
    return rv;
}

static CK_RV find_final(CK_SESSION_HANDLE session)
{
    HOLD;
    return state(session);
}

static CK_RV attribute(CK_OBJECT_HANDLE object, CK_ATTRIBUTE *entry)
{
    static CK_ULONG class = CKO_PRIVATE_KEY, type = CKK_RSA;
    static CK_BBOOL yes = CK_TRUE, no = CK_FALSE;
    CK_BYTE modulus[MODULUS];
    const void *value = &no;
    CK_ULONG length = 1;
    memset(modulus, 0xa0 + (int) object, sizeof modulus);
    switch (entry->type) {
    case CKA_CLASS: value = &class, length = sizeof class; break;
    case CKA_KEY_TYPE: value = &type, length = sizeof type; break;
    case CKA_MODULUS: value = modulus, length = sizeof modulus; break;
    case CKA_LABEL: value = object == 1 ? "one" : "two", length = 3; break;
    case CKA_SENSITIVE: case CKA_SIGN: case CKA_TOKEN: value = &yes; break;
    case CKA_PRIVATE: case CKA_EXTRACTABLE: case CKA_DECRYPT: case CKA_ALWAYS_AUTHENTICATE: break;
    default:
        entry->ulValueLen = CK_UNAVAILABLE_INFORMATION;
        return CKR_ATTRIBUTE_TYPE_INVALID;
    }
    if (entry->pValue)
        memcpy(entry->pValue, value, length);
    entry->ulValueLen = length;
    return CKR_OK;
}

static CK_RV attributes(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE object, CK_ATTRIBUTE *list, CK_ULONG count)
{
    HOLD;
    CK_RV all = state(session);
    for (CK_ULONG at = 0; at < count; at++) {
        CK_RV one = attribute(object, &list[at]);
        all = one == CKR_OK ? all : one;
    }
    return all;
}

static CK_RV sign_init(CK_SESSION_HANDLE session, CK_MECHANISM *mechanism, CK_OBJECT_HANDLE key)
{
    HOLD;
    (void) mechanism;
    CK_RV rv = state(session);
    if (rv != CKR_OK)
        return rv;
    sessions[session].key = key;
    char path[4096];
    order_file(path, sizeof path, "anew");
    if (key == 1 && unlink(path) == 0) {
        initialized = 0;
        first_waits = 1;
        wait_while(&first_waits);
    } else if (key == 2 && first_waits) {
        second = pthread_self();
        second_waits = 1;
        first_waits = 0;
    }
    return CKR_OK;
}

// The number of the key, again and again.
static CK_RV sign(CK_SESSION_HANDLE session, CK_BYTE *data, CK_ULONG length, CK_BYTE *out, CK_ULONG *room)
{
    HOLD;
    (void) data, (void) length;
    if (second_waits && pthread_equal(second, pthread_self()))
        wait_while(&second_waits);
    second_waits = 0;
    CK_RV rv = state(session);
    if (rv == CKR_OK && !sessions[session].key)
        rv = CKR_OPERATION_NOT_INITIALIZED;
    if (rv == CKR_OK && out && *room >= MODULUS) {
        memset(out, (int) sessions[session].key, MODULUS);
        sessions[session].key = 0;
    }
    *room = MODULUS;
    return rv;
}

static CK_FUNCTION_LIST list = {
    .version = { 2, 40 },
    .C_Initialize = initialize,
    .C_Finalize = finalize,
    .C_GetSlotList = slot_list,
    .C_GetSlotInfo = slot_info,
    .C_GetTokenInfo = token_info,
    .C_GetMechanismList = mechanism_list,
    .C_GetMechanismInfo = mechanism_info,
    .C_OpenSession = open_session,
    .C_CloseSession = close_session,
    .C_GetSessionInfo = session_info,
    .C_FindObjectsInit = find_init,
    .C_FindObjects = find,
    .C_FindObjectsFinal = find_final,
    .C_GetAttributeValue = attributes,
    .C_SignInit = sign_init,
    .C_Sign = sign,
};

CK_RV C_GetFunctionList(CK_FUNCTION_LIST **out)
{
    *out = &list;
    return CKR_OK;
}
