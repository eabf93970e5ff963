// SPDX-License-Identifier: Apache-2.0
// Metaslot as another module: the copy of the library that TWIN_MODULE names, with the configuration that TWIN_CONF names, and
// without our own interface, by which it would be known. It reads that at the first call that
// needs its slots.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "metaslot/pkcs11.h"

static CK_C_Initialize begin;
static CK_FUNCTION_LIST classic;
static CK_FUNCTION_LIST_3_0 third;
static CK_FUNCTION_LIST_3_2 newest;
static CK_INTERFACE interfaces[3];

static CK_RV initialize(void *args)
{
    const char *own = getenv("METASLOT_CONF");
    char *kept = own ? strdup(own) : NULL;
    setenv("METASLOT_CONF", getenv("TWIN_CONF"), 1);
    CK_RV rv = begin(args);
    CK_ULONG count;
    classic.C_GetSlotList(CK_FALSE, NULL, &count);
    if (kept)
        setenv("METASLOT_CONF", kept, 1);
    else
        unsetenv("METASLOT_CONF");
    free(kept);
    return rv;
}

// Each list is a copy that begins with our C_Initialize.
__attribute__((constructor)) static void load(void)
{
    struct { CK_VERSION version; void *copy; size_t size; } all[] = {
        {{3, 2}, &newest, sizeof newest},
        {{3, 0}, &third, sizeof third},
        {{2, 40}, &classic, sizeof classic},
    };
    void *library = dlopen(getenv("TWIN_MODULE"), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    CK_RV (*get)(CK_UTF8CHAR *, CK_VERSION *, CK_INTERFACE **, CK_FLAGS);
    *(void **) &get = dlsym(library, "C_GetInterface");
    for (int at = 0; at < 3; at++) {
        CK_INTERFACE *found;
        if (get((CK_UTF8CHAR *) "PKCS 11", &all[at].version, &found, 0) != CKR_OK)
            continue;
        memcpy(all[at].copy, found->pFunctionList, all[at].size);
        CK_FUNCTION_LIST *list = all[at].copy;
        begin = list->C_Initialize;
        list->C_Initialize = initialize;
        interfaces[at] = (CK_INTERFACE) {found->pInterfaceName, list, found->flags};
    }
}

CK_RV C_GetFunctionList(CK_FUNCTION_LIST **out)
{
    *out = &classic;
    return CKR_OK;
}

CK_RV C_GetInterface(CK_UTF8CHAR *name, CK_VERSION *version, CK_INTERFACE **out, CK_FLAGS flags)
{
    if (flags || (name && strcmp((char *) name, "PKCS 11")))
        return CKR_FUNCTION_FAILED;
    for (int at = 0; at < 3; at++) {
        CK_VERSION *has = interfaces[at].pFunctionList;
        if (has && (!version || (version->major == has->major && version->minor == has->minor))) {
            *out = &interfaces[at];
            return CKR_OK;
        }
    }
    return CKR_FUNCTION_FAILED;
}
