// SPDX-License-Identifier: Apache-2.0
// A module with one token and one key that does what FAKE says: nothing wrong, or one thing.
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keyless.h"

static int is(const char *what)
{
    const char *mode = getenv("FAKE");
    return mode && strcmp(mode, what) == 0;
}

static int broken;

// How often sessions were lost, and how often somebody searched or logged in.
static int losses, searches, logins;

// Whether nothing works any more before the next C_Initialize.
static int wrecked;

// Whether the token has been taken out: a file says so.
static int gone(void)
{
    const char *sign = getenv("FAKE_GONE");
    return sign && access(sign, F_OK) == 0;
}

// Calls the module that calls this one; every call must be refused, and none may hang.
static int is_refused(void)
{
    void *library = dlopen(getenv("METASLOT_MODULE"), RTLD_NOW | RTLD_NOLOAD);
    CK_C_GetFunctionList entrance = library ? (CK_C_GetFunctionList) dlsym(library, "C_GetFunctionList") : NULL;
    CK_FUNCTION_LIST *caller;
    CK_ULONG count = 0;
    return entrance && entrance(&caller) == CKR_OK
        && caller->C_Initialize(NULL) == CKR_FUNCTION_FAILED
        && caller->C_GetSlotList(CK_TRUE, NULL, &count) == CKR_FUNCTION_FAILED
        && caller->C_Finalize(NULL) == CKR_FUNCTION_FAILED;
}

// Whether the host has ended it, and how many calls have noticed.
static int ended, noticed;

static CK_RV initialize(void *args)
{
    (void) args;
    if (is("begun-by-two") && noticed && !__sync_bool_compare_and_swap(&ended, 1, 0))
        return CKR_CRYPTOKI_ALREADY_INITIALIZED;
    if (is("calls-back") && !is_refused())
        return CKR_GENERAL_ERROR;
    return is("does-not-start") || (is("starts-late") && gone()) ? CKR_DEVICE_ERROR : CKR_OK;
}

static CK_RV finalize(void *reserved)
{
    (void) reserved;
    wrecked = 0;
    if (noticed)
        abort();
    ended = 1;
    return CKR_OK;
}

static CK_RV slot_list(CK_BBOOL present, CK_SLOT_ID *list, CK_ULONG *count)
{
    if (wrecked)
        return CKR_DEVICE_ERROR;
    if (is("no-slots") || (present && gone())) {
        *count = 0;
        return CKR_OK;
    }
    if (is("slots-without-end") && !list) {
        *count = 1UL << 60;
        return CKR_OK;
    }
    if (is("slots-that-grow") && list)
        return CKR_BUFFER_TOO_SMALL;
    *count = is("slots-twice") ? 2 : 1;
    for (CK_ULONG at = 0; list && at < *count; at++)
        list[at] = 5;
    return CKR_OK;
}

static CK_RV slot_info(CK_SLOT_ID slot, CK_SLOT_INFO *info)
{
    (void) slot;
    memset(info, ' ', sizeof *info);
    memset(info->slotDescription, 0xff, 7);
    return CKR_OK;
}

static CK_RV token_info(CK_SLOT_ID slot, CK_TOKEN_INFO *info)
{
    (void) slot;
    if (is("begun-by-two") && ended) {
        // Each of two threads is told so before either can do something about it.
        for (__sync_fetch_and_add(&noticed, 1); __sync_fetch_and_add(&noticed, 0) < 2;)
            usleep(100);
        return CKR_CRYPTOKI_NOT_INITIALIZED;
    }
    if (gone())
        return CKR_TOKEN_NOT_PRESENT;
    memset(info, ' ', sizeof *info);
    memcpy(info->label, "fake", 4);
    memset(info->manufacturerID, 0xff, sizeof info->manufacturerID);
    memcpy(info->model, "\033[31mred\r\n", 10);
    memset(info->serialNumber, 0xff, sizeof info->serialNumber);
    memcpy(info->serialNumber, is("other-token-after-loss") && losses ? "2" : "1", 1);
    info->flags = CKF_RNG | CKF_TOKEN_INITIALIZED | CKF_LOGIN_REQUIRED | CKF_USER_PIN_INITIALIZED;
    info->ulMinPinLen = is("pins") ? ~0UL : 4;
    info->ulMaxPinLen = 8;
    return CKR_OK;
}

static CK_RV mechanism_list(CK_SLOT_ID slot, CK_MECHANISM_TYPE *list, CK_ULONG *count)
{
    (void) slot;
    const CK_MECHANISM_TYPE all[] = { CKM_AES_CBC, 0x99999999, CKM_SHA256_HMAC, CKM_AES_CBC, CKM_SHA256 };
    if (is("mechanisms-without-end") && !list) {
        *count = 1UL << 61;
        return CKR_OK;
    }
    if (list)
        memcpy(list, all, sizeof all);
    *count = sizeof all / sizeof *all;
    return CKR_OK;
}

static CK_RV mechanism_info(CK_SLOT_ID slot, CK_MECHANISM_TYPE mechanism, CK_MECHANISM_INFO *info)
{
    (void) slot;
    info->ulMinKeySize = 16;
    info->ulMaxKeySize = is("sizes") ? 0 : 64;
    if (mechanism == CKM_SHA256)
        info->flags = CKF_DIGEST;
    else
        info->flags = mechanism == CKM_AES_CBC ? CKF_ENCRYPT | CKF_DECRYPT : CKF_SIGN | CKF_VERIFY;
    return CKR_OK;
}

static CK_ULONG sessions;

static CK_RV open_session(CK_SLOT_ID slot, CK_FLAGS flags, void *app, CK_NOTIFY notify, CK_SESSION_HANDLE *out)
{
    (void) slot, (void) flags, (void) app, (void) notify;
    if (wrecked)
        return CKR_DEVICE_ERROR;
    if (gone())
        return CKR_TOKEN_NOT_PRESENT;
    if (is("no-sessions"))
        return CKR_SESSION_COUNT;
    broken = 0;
    *out = ++sessions;
    return CKR_OK;
}

static CK_RV close_session(CK_SESSION_HANDLE session)
{
    (void) session;
    return CKR_OK;
}

static int logged_in;

static CK_RV session_info(CK_SESSION_HANDLE session, CK_SESSION_INFO *info)
{
    (void) session;
    memset(info, 0, sizeof *info);
    info->slotID = 5;
    info->state = logged_in ? CKS_RW_USER_FUNCTIONS : CKS_RW_PUBLIC_SESSION;
    return CKR_OK;
}

static CK_RV login(CK_SESSION_HANDLE session, CK_USER_TYPE user, CK_UTF8CHAR *pin, CK_ULONG length)
{
    (void) session, (void) user, (void) pin, (void) length;
    if (is("other-token-after-loss") && losses)
        abort();
    logins++;
    logged_in = 1;
    return is("login-of-its-own") ? 0x80001234 : CKR_OK;
}

static CK_RV logout(CK_SESSION_HANDLE session)
{
    (void) session;
    logged_in = 0;
    return is("no-logout") ? CKR_GENERAL_ERROR : CKR_OK;
}

static int found;

static CK_RV find_init(CK_SESSION_HANDLE session, CK_ATTRIBUTE *template, CK_ULONG count)
{
    (void) session, (void) template, (void) count;
    found = 0;
    searches++;
    return wrecked ? CKR_DEVICE_ERROR : CKR_OK;
}

static CK_RV find(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE *list, CK_ULONG room, CK_ULONG *count)
{
    (void) session;
    *count = 0;
    if (is("objects-without-end")) {
        static CK_OBJECT_HANDLE last = 77;
        for (*count = 0; *count < room; ++*count)
            list[*count] = last++;
    } else if (is("objects-twice") && !found++) {
        list[0] = list[1] = 77;
        *count = 2;
    } else if (!found++) {
        list[0] = 77;
        *count = is("more-objects-than-room") ? 1UL << 60 : 1;
    }
    return CKR_OK;
}

static CK_RV find_final(CK_SESSION_HANDLE session)
{
    (void) session;
    return CKR_OK;
}

static CK_RV attributes(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE object, CK_ATTRIBUTE *list, CK_ULONG count)
{
    (void) session, (void) object;
    CK_RV rv = CKR_OK;
    for (CK_ULONG at = 0; at < count; at++) {
        CK_ULONG number = list[at].type == CKA_CLASS ? CKO_SECRET_KEY : CKK_GENERIC_SECRET;
        CK_BBOOL flag = list[at].type != CKA_SENSITIVE && list[at].type != CKA_ALWAYS_AUTHENTICATE;
        const void *value = &flag;
        CK_ULONG length = sizeof flag;
        if (list[at].type == CKA_PRIVATE && is("silent-about-privacy"))
            goto unavailable;
        switch (list[at].type) {
        case CKA_CLASS: case CKA_KEY_TYPE:
            value = &number;
            length = sizeof number;
            break;
        case CKA_UNIQUE_ID:
            value = (is("handle-again") && searches > 1) || (is("other-key-after-loss") && losses) ? "2" : "1";
            length = 1;
            break;
        case CKA_LABEL:
            value = "key";
            length = is("label-without-end") ? 1UL << 60 : 3;
            break;
        case CKA_VALUE:
            value = "0123456789abcdef";
            length = 16;
            break;
        case CKA_SENSITIVE: case CKA_EXTRACTABLE: case CKA_SIGN: case CKA_VERIFY: case CKA_PRIVATE:
        case CKA_ENCRYPT: case CKA_DECRYPT: case CKA_TOKEN:
            break;
        default:
        unavailable:
            list[at].ulValueLen = CK_UNAVAILABLE_INFORMATION;
            rv = CKR_ATTRIBUTE_TYPE_INVALID;
            continue;
        }
        if (list[at].type == CKA_PRIVATE && is("privacy-without-end"))
            length = 1UL << 60;
        if (is("short-numbers") && length == sizeof number)
            length = 4;
        if (list[at].pValue && length < 1UL << 32)
            memcpy(list[at].pValue, value, length);
        list[at].ulValueLen = length;
    }
    return rv;
}

static CK_RV sign_init(CK_SESSION_HANDLE session, CK_MECHANISM *mechanism, CK_OBJECT_HANDLE key)
{
    (void) session, (void) mechanism, (void) key;
    if (is("calls-back") && !is_refused())
        return CKR_GENERAL_ERROR;
    if (strstr(getenv("FAKE"), "-after-loss") && !losses++)
        return CKR_SESSION_HANDLE_INVALID;
    static int wrecks;
    if (is("breaks-wholly") && !wrecks++)
        wrecked = 1;
    if (wrecked)
        return CKR_DEVICE_ERROR;
    if (is("breaks-once") && !broken) {
        static int once;
        broken = !once++;
        if (broken)
            return CKR_SESSION_HANDLE_INVALID;
    }
    if (is("forks")) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            exit(0);
        }
        waitpid(child, &status, 0);
        if (status != 0)
            return CKR_GENERAL_ERROR;
    }
    int ends[2];
    if (is("closed-pipe") && pipe(ends) == 0) {
        close(ends[0]);
        // A host that is not written in Rust.
        signal(SIGPIPE, SIG_DFL);
        if (write(ends[1], "", 1) == 1)
            return CKR_GENERAL_ERROR;
        close(ends[1]);
    }
    struct rlimit limit;
    if (is("short-files") && getrlimit(RLIMIT_FSIZE, &limit) == 0) {
        struct rlimit none = {0, limit.rlim_max};
        FILE *file = tmpfile();
        setrlimit(RLIMIT_FSIZE, &none);
        signal(SIGXFSZ, SIG_DFL);
        if (file == NULL || write(fileno(file), "", 1) == 1)
            return CKR_GENERAL_ERROR;
        setrlimit(RLIMIT_FSIZE, &limit);
        fclose(file);
    }
    if (is("removed") || gone())
        return CKR_DEVICE_REMOVED;
    return is("code-of-its-own") ? 0x80001234 : CKR_OK;
}

// What it is to do at the next signature, once: a file says so.
static void strike(void)
{
    char path[512], order[16] = "";
    snprintf(path, sizeof path, "%s/strike", getenv("HOME"));
    FILE *file = fopen(path, "r");
    if (!file)
        return;
    if (!fgets(order, sizeof order, file))
        order[0] = 0;
    fclose(file);
    unlink(path);
    if (strcmp(order, "crash") == 0)
        raise(SIGSEGV);
    while (strcmp(order, "hang") == 0)
        pause();
}

static CK_RV sign(CK_SESSION_HANDLE session, CK_BYTE *data, CK_ULONG length, CK_BYTE *out, CK_ULONG *room)
{
    (void) session, (void) data, (void) length;
    strike();
    if (is("asks-for-more-room"))
        return CKR_BUFFER_TOO_SMALL;
    if (out)
        memset(out, 0x11, *room < 32 ? *room : 32);
    *room = is("longer-signature") ? 1UL << 40 : is("shorter-signature") ? 31 : 32;
    return CKR_OK;
}

static CK_RV sign_update(CK_SESSION_HANDLE session, CK_BYTE *data, CK_ULONG length)
{
    (void) session, (void) data, (void) length;
    return CKR_OK;
}

static CK_RV sign_final(CK_SESSION_HANDLE session, CK_BYTE *out, CK_ULONG *room)
{
    if (is("final-without-end") || is("final-beyond-its-room")) {
        *room = 1UL << 60;
        return is("final-beyond-its-room") ? CKR_OK : CKR_BUFFER_TOO_SMALL;
    }
    return sign(session, NULL, 0, out, room);
}

static CK_RV cipher_init(CK_SESSION_HANDLE session, CK_MECHANISM *mechanism, CK_OBJECT_HANDLE key)
{
    (void) session, (void) mechanism, (void) key;
    return CKR_OK;
}

static CK_RV cipher(CK_SESSION_HANDLE session, CK_BYTE *in, CK_ULONG length, CK_BYTE *out, CK_ULONG *room)
{
    (void) session;
    if (out)
        memcpy(out, in, length < *room ? length : *room);
    *room = is("longer-text") ? 1UL << 33 : is("shorter-text") ? length - 1 : length;
    return CKR_OK;
}

static CK_RV cipher_final(CK_SESSION_HANDLE session, CK_BYTE *out, CK_ULONG *room)
{
    (void) session, (void) out;
    *room = 0;
    return CKR_OK;
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
    .C_SignUpdate = sign_update,
    .C_SignFinal = sign_final,
    .C_EncryptInit = cipher_init,
    .C_Encrypt = cipher,
    .C_EncryptUpdate = cipher,
    .C_EncryptFinal = cipher_final,
    KEYLESS,
};

CK_RV C_GetFunctionList(CK_FUNCTION_LIST **out)
{
    *out = &list;
    return CKR_OK;
}
