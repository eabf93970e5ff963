// SPDX-License-Identifier: Apache-2.0
// A PKCS#11 module that is another one, which METASLOT_MODULE names, but reads no object any more once it has made a key pair.
#include <dlfcn.h>
#include <stdlib.h>
#include <metaslot/pkcs11.h>

static CK_FUNCTION_LIST ours, *theirs;
static int made;

static CK_RV generate(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_ATTRIBUTE_PTR public, CK_ULONG publics,
                      CK_ATTRIBUTE_PTR private, CK_ULONG privates, CK_OBJECT_HANDLE_PTR one, CK_OBJECT_HANDLE_PTR other) {
    CK_RV code = theirs->C_GenerateKeyPair(session, mechanism, public, publics, private, privates, one, other);
    made |= code == CKR_OK;
    return code;
}

static CK_RV read(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE object, CK_ATTRIBUTE_PTR template, CK_ULONG count) {
    return made ? CKR_DEVICE_ERROR : theirs->C_GetAttributeValue(session, object, template, count);
}

CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR list) {
    void *module = dlopen(getenv("METASLOT_MODULE"), RTLD_NOW);
    CK_C_GetFunctionList get = NULL;
    if (module == NULL || list == NULL)
        return CKR_ARGUMENTS_BAD;
    *(void **)&get = dlsym(module, "C_GetFunctionList");
    CK_RV code = get == NULL ? CKR_GENERAL_ERROR : get(&theirs);
    if (code == CKR_OK) {
        ours = *theirs;
        ours.C_GenerateKeyPair = generate;
        ours.C_GetAttributeValue = read;
        *list = &ours;
    }
    return code;
}
