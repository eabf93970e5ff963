// SPDX-License-Identifier: Apache-2.0
// A module with three tokens that have the same key. A token dies while a file says so (its first letter says by which
// code), and has forgotten everything when it is back: sessions, logins and the numbers of its objects. They are behind a
// server, which is not there while a file "no-server" says so: as p11-kit's client does it, nobody looks for one that has gone
// before the next C_Initialize, which succeeds without it too, and then there are no slots. While a file "lost-" and its
// number says so a token does not have its key, and then has it by another number. While a file "out-" and its number says so
// a token has been taken out: the others' next sessions have the numbers of its own. By a file "forget-" or "reset-" and its number
// it forgets its login once, and by the second one it says so: its sessions stay, and its key is hidden in them. While there
// is a file "hang-find-" or "hang-info-" and its number, its searches or what it says of itself do not come to an end. While there is a
// file "no-search" none succeeds; while there is a file "no-mechanism" the second mechanism cannot be told.
#include <pthread.h>
#include <string.h>

#include "orders.h"

enum { TOKENS = 3, SESSIONS = 4096, MODULUS = 256 };

static struct {
    int died;
    int logged_in;
    int forgot;
    CK_ULONG life;
    int lost;
    CK_ULONG losses;
} tokens[TOKENS];

static struct {
    int open;
    int token;
    CK_ULONG life;
    int searches;
    int signs;
} sessions[SESSIONS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// Whether there is a connection to the server.
static int connected;

static int is_connected(void)
{
    return connected = connected && !ordered("no-server");
}

static int is_out(int token)
{
    char order[16];
    snprintf(order, sizeof order, "out-%d", token);
    return ordered(order);
}

// Ends the sessions of tokens that were taken out.
static void end_sessions(void)
{
    for (int token = 0; token < TOKENS; token++) {
        if (!is_out(token))
            continue;
        tokens[token].logged_in = 0;
        for (int at = 0; at < SESSIONS; at++)
            sessions[at].open &= sessions[at].token != token;
    }
}

// Not under the lock.
static void hang(const char *what, int token)
{
    char order[24];
    snprintf(order, sizeof order, "hang-%s-%d", what, token);
    while (ordered(order))
        usleep(1000);
}

// What a token answers now: it is asked for under the lock.
static CK_RV state(int token)
{
    char order[16];
    if (!is_connected())
        return CKR_SLOT_ID_INVALID;
    end_sessions();
    if (is_out(token))
        return CKR_TOKEN_NOT_PRESENT;
    snprintf(order, sizeof order, "dead-%d", token);
    CK_RV rv = ordered_failure(order);
    if (rv == CKR_OK) {
        if (tokens[token].died) {
            tokens[token].died = tokens[token].logged_in = 0;
            tokens[token].life++;
            for (int at = 0; at < SESSIONS; at++)
                sessions[at].open &= sessions[at].token != token;
        }
        return CKR_OK;
    }
    tokens[token].died = 1;
    return rv;
}

// Whether there was such an order to forget the login.
static int forgets(const char *how, int token)
{
    char order[16], path[4096];
    snprintf(order, sizeof order, "%s-%d", how, token);
    order_file(path, sizeof path, order);
    if (remove(path) != 0)
        return 0;
    tokens[token].logged_in = 0;
    return tokens[token].forgot = 1;
}

static CK_RV of_session(CK_SESSION_HANDLE session)
{
    if (session == 0 || session >= SESSIONS || !sessions[session].open)
        return CKR_SESSION_HANDLE_INVALID;
    CK_RV rv = state(sessions[session].token);
    if (rv != CKR_OK)
        return rv;
    forgets("forget", sessions[session].token);
    if (forgets("reset", sessions[session].token))
        return CKR_DEVICE_ERROR;
    return sessions[session].life == tokens[sessions[session].token].life ? CKR_OK : CKR_SESSION_HANDLE_INVALID;
}

static void leave(const char *sign)
{
    char path[4096];
    order_file(path, sizeof path, sign);
    FILE *told = fopen(path, "w");
    if (told)
        fclose(told);
}

// CK_INVALID_HANDLE where it is lost.
static CK_ULONG key_of(CK_SESSION_HANDLE session)
{
    int token = sessions[session].token;
    char order[16];
    snprintf(order, sizeof order, "lost-%d", token);
    int was_lost = tokens[token].lost;
    tokens[token].lost = ordered(order);
    tokens[token].losses += tokens[token].lost && !was_lost;
    return tokens[token].lost ? CK_INVALID_HANDLE : 77 + 100 * tokens[token].life + 10000 * tokens[token].losses;
}

static int hold(void)
{
    return pthread_mutex_lock(&lock);
}

static void let_go(int *held)
{
    *held = pthread_mutex_unlock(&lock);
}

// Until the function returns no other thread is in it.
#define HOLD __attribute__((cleanup(let_go), unused)) int held = hold()

static CK_RV initialize(void *args)
{
    HOLD;
    (void) args;
    connected = !ordered("no-server");
    return CKR_OK;
}

static CK_RV finalize(void *reserved)
{
    HOLD;
    (void) reserved;
    connected = 0;
    memset(tokens, 0, sizeof tokens);
    memset(sessions, 0, sizeof sessions);
    return CKR_OK;
}

static CK_RV slot_list(CK_BBOOL present, CK_SLOT_ID *list, CK_ULONG *count)
{
    HOLD;
    *count = 0;
    for (int at = 0; is_connected() && at < TOKENS; at++) {
        if (present && is_out(at))
            continue;
        if (list)
            list[*count] = at;
        ++*count;
    }
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
    hang("info", slot);
    HOLD;
    CK_RV rv = state(slot);
    memset(info, ' ', sizeof *info);
    info->label[0] = 'a' + slot;
    info->serialNumber[0] = '0' + slot;
    info->flags = CKF_TOKEN_INITIALIZED | CKF_LOGIN_REQUIRED | CKF_USER_PIN_INITIALIZED;
    info->ulMinPinLen = 4;
    info->ulMaxPinLen = 8;
    return rv;
}

static CK_RV mechanism_list(CK_SLOT_ID slot, CK_MECHANISM_TYPE *list, CK_ULONG *count)
{
    (void) slot;
    if (list)
        list[0] = CKM_SHA256_RSA_PKCS, list[1] = CKM_SHA512_RSA_PKCS;
    *count = 2;
    return CKR_OK;
}

static CK_RV mechanism_info(CK_SLOT_ID slot, CK_MECHANISM_TYPE mechanism, CK_MECHANISM_INFO *info)
{
    (void) slot;
    CK_RV rv = mechanism == CKM_SHA512_RSA_PKCS ? ordered_failure("no-mechanism") : CKR_OK;
    if (rv != CKR_OK)
        return rv;
    info->ulMinKeySize = 2048;
    info->ulMaxKeySize = 4096;
    info->flags = CKF_SIGN;
    return CKR_OK;
}

static CK_RV open_session(CK_SLOT_ID slot, CK_FLAGS flags, void *app, CK_NOTIFY notify, CK_SESSION_HANDLE *out)
{
    HOLD;
    (void) flags, (void) app, (void) notify;
    CK_RV rv = state(slot);
    // The lowest number that is free: what was another token's comes back soon.
    for (CK_ULONG at = 1; rv == CKR_OK && at < SESSIONS; at++) {
        if (sessions[at].open)
            continue;
        sessions[at].open = 1;
        sessions[at].token = slot;
        sessions[at].life = tokens[slot].life;
        *out = at;
        break;
    }
    return rv;
}

static CK_RV tell_session(CK_SESSION_HANDLE session, CK_SESSION_INFO *info)
{
    HOLD;
    CK_RV rv = of_session(session);
    if (rv != CKR_OK)
        return rv;
    info->slotID = sessions[session].token;
    info->state = tokens[info->slotID].logged_in ? CKS_RO_USER_FUNCTIONS : CKS_RO_PUBLIC_SESSION;
    return CKR_OK;
}

static CK_RV session_info(CK_SESSION_HANDLE session, CK_SESSION_INFO *info)
{
    CK_RV rv = tell_session(session, info);
    // A failure may take its time.
    if (rv != CKR_OK)
        stall("failure");
    return rv;
}

static CK_RV close_session(CK_SESSION_HANDLE session)
{
    HOLD;
    CK_RV rv = of_session(session);
    sessions[session % SESSIONS].open = 0;
    return rv;
}

static CK_RV login(CK_SESSION_HANDLE session, CK_USER_TYPE user, CK_UTF8CHAR *pin, CK_ULONG length)
{
    HOLD;
    (void) user;
    CK_RV rv = of_session(session);
    if (rv == CKR_OK && tokens[sessions[session].token].logged_in)
        return CKR_USER_ALREADY_LOGGED_IN;
    char order[16];
    snprintf(order, sizeof order, "locked-%d", sessions[session].token);
    if (rv == CKR_OK && ordered(order))
        return CKR_PIN_LOCKED;
    if (rv == CKR_OK && (length != 4 || memcmp(pin, "1234", 4) != 0))
        rv = CKR_PIN_INCORRECT;
    if (rv == CKR_OK)
        tokens[sessions[session].token].logged_in = 1;
    return rv;
}

// An identity "web", whose wrong PINs leave a file "guessed".
static CK_RV login_user(CK_SESSION_HANDLE session, CK_USER_TYPE user, CK_UTF8CHAR *pin, CK_ULONG length,
                        CK_UTF8CHAR *name, CK_ULONG name_length)
{
    HOLD;
    (void) user;
    CK_RV rv = of_session(session);
    if (rv != CKR_OK)
        return rv;
    if (length != 4 || memcmp(pin, "5678", 4) != 0 || name_length != 3 || memcmp(name, "web", 3) != 0) {
        leave("guessed");
        return CKR_PIN_INCORRECT;
    }
    tokens[sessions[session].token].logged_in = 1;
    return rv;
}

// Leaves a file "logged-out".
static CK_RV logout(CK_SESSION_HANDLE session)
{
    HOLD;
    CK_RV rv = of_session(session);
    if (rv != CKR_OK)
        return rv;
    tokens[sessions[session].token].logged_in = 0;
    leave("logged-out");
    return rv;
}

static CK_RV find_init(CK_SESSION_HANDLE session, CK_ATTRIBUTE *template, CK_ULONG count)
{
    HOLD;
    (void) template, (void) count;
    CK_RV rv = of_session(session);
    if (rv == CKR_OK)
        rv = ordered_failure("no-search");
    if (rv == CKR_OK)
        sessions[session].searches = 1;
    return rv;
}

static CK_RV found(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE *list, CK_ULONG *count)
{
    HOLD;
    CK_RV rv = of_session(session);
    *count = 0;
    if (rv == CKR_OK && tokens[sessions[session].token].logged_in && sessions[session].searches) {
        sessions[session].searches = 0;
        list[0] = key_of(session);
        *count = list[0] != CK_INVALID_HANDLE;
    }
    return rv;
}

static CK_RV find(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE *list, CK_ULONG room, CK_ULONG *count)
{
    (void) room;
    CK_RV rv = found(session, list, count);
    char order[16];
    snprintf(order, sizeof order, "find-%d", sessions[session].token);
    stall(order);
    hang("find", sessions[session].token);
    return rv;
}

static CK_RV find_final(CK_SESSION_HANDLE session)
{
    HOLD;
    return of_session(session);
}

static CK_RV attribute(CK_ATTRIBUTE *entry)
{
    static CK_BYTE modulus[MODULUS];
    static CK_ULONG class = CKO_PRIVATE_KEY, type = CKK_RSA;
    static CK_BBOOL yes = CK_TRUE, no = CK_FALSE;
    const void *value = &no;
    CK_ULONG length = 1;
    memset(modulus, 0xab, sizeof modulus);
    switch (entry->type) {
    case CKA_CLASS: value = &class, length = sizeof class; break;
    case CKA_KEY_TYPE: value = &type, length = sizeof type; break;
    case CKA_MODULUS: value = modulus, length = sizeof modulus; break;
    case CKA_LABEL: value = "web", length = 3; break;
    case CKA_ID: value = "1", length = 1; break;
    case CKA_SENSITIVE: case CKA_SIGN: case CKA_PRIVATE: case CKA_TOKEN: value = &yes; break;
    case CKA_EXTRACTABLE: case CKA_DECRYPT: case CKA_ALWAYS_AUTHENTICATE: break;
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
    CK_RV rv = of_session(session);
    if (rv == CKR_OK && (object != key_of(session) || !tokens[sessions[session].token].logged_in))
        rv = CKR_OBJECT_HANDLE_INVALID;
    CK_RV all = rv;
    for (CK_ULONG at = 0; rv == CKR_OK && at < count; at++) {
        CK_RV one = attribute(&list[at]);
        all = one == CKR_OK ? all : one;
    }
    rv = all;
    return rv;
}

static CK_RV sign_init(CK_SESSION_HANDLE session, CK_MECHANISM *mechanism, CK_OBJECT_HANDLE key)
{
    HOLD;
    (void) mechanism;
    CK_RV rv = of_session(session);
    if (rv == CKR_OK && !tokens[sessions[session].token].logged_in)
        rv = tokens[sessions[session].token].forgot ? CKR_KEY_HANDLE_INVALID : CKR_USER_NOT_LOGGED_IN;
    if (rv == CKR_OK && key != key_of(session))
        rv = CKR_KEY_HANDLE_INVALID;
    if (rv == CKR_OK)
        sessions[session].signs = 1;
    return rv;
}

// The data, after the number of the token.
static CK_RV sign(CK_SESSION_HANDLE session, CK_BYTE *data, CK_ULONG length, CK_BYTE *out, CK_ULONG *room)
{
    HOLD;
    CK_RV rv = of_session(session);
    if (rv == CKR_OK && !sessions[session].signs)
        rv = CKR_OPERATION_NOT_INITIALIZED;
    if (rv == CKR_OK && out && *room >= MODULUS) {
        memset(out, 0, MODULUS);
        out[0] = sessions[session].token;
        memcpy(out + 1, data, length < MODULUS - 1 ? length : MODULUS - 1);
        sessions[session].signs = 0;
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
    .C_Login = login,
    .C_Logout = logout,
    .C_FindObjectsInit = find_init,
    .C_FindObjects = find,
    .C_FindObjectsFinal = find_final,
    .C_GetAttributeValue = attributes,
    .C_SignInit = sign_init,
    .C_Sign = sign,
};

CK_RV C_GetInterface(CK_UTF8CHAR *name, CK_VERSION *version, CK_INTERFACE **out, CK_FLAGS flags)
{
    static CK_FUNCTION_LIST_3_0 newer;
    static CK_INTERFACE interface = { (CK_UTF8CHAR *) "PKCS 11", &newer, 0 };
    (void) name, (void) flags;
    if (version && (version->major != 3 || version->minor != 0))
        return CKR_FUNCTION_FAILED;
    // It begins with the members of the older one.
    memcpy(&newer, &list, sizeof list);
    newer.version = (CK_VERSION) { 3, 0 };
    newer.C_LoginUser = login_user;
    *out = &interface;
    return CKR_OK;
}

CK_RV C_GetFunctionList(CK_FUNCTION_LIST **out)
{
    *out = &list;
    return CKR_OK;
}
