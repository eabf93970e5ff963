// SPDX-License-Identifier: Apache-2.0
// A PKCS#11 module that is another one, which METASLOT_MODULE names, but fails where a program says so: it sets `fault` to the function's name,
// and it counts the session objects that it has made in `objects`. Where a program cannot say so, FAULT_AFTER_PAIR names the function that fails
// once a key pair is made.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <metaslot/pkcs11.h>

static CK_FUNCTION_LIST ours, *theirs;
const char *fault = "";
long objects;

static CK_RV encrypt(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key) {
    return strcmp(fault, "C_EncryptInit") == 0 ? CKR_DEVICE_MEMORY : theirs->C_EncryptInit(session, mechanism, key);
}

static CK_RV read(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE object, CK_ATTRIBUTE_PTR template, CK_ULONG count) {
    return strcmp(fault, "C_GetAttributeValue") == 0 ? CKR_DEVICE_ERROR : theirs->C_GetAttributeValue(session, object, template, count);
}

static CK_RV generate(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_ATTRIBUTE_PTR public, CK_ULONG publics,
                      CK_ATTRIBUTE_PTR private, CK_ULONG privates, CK_OBJECT_HANDLE_PTR one, CK_OBJECT_HANDLE_PTR other) {
    CK_RV code = theirs->C_GenerateKeyPair(session, mechanism, public, publics, private, privates, one, other);
    objects += code == CKR_OK ? 2 : 0;
    if (code == CKR_OK && getenv("FAULT_AFTER_PAIR") != NULL)
        fault = getenv("FAULT_AFTER_PAIR");
    return code;
}

static CK_RV create(CK_SESSION_HANDLE session, CK_ATTRIBUTE_PTR template, CK_ULONG count, CK_OBJECT_HANDLE_PTR object) {
    if (strcmp(fault, "C_CreateObject") == 0)
        return CKR_DEVICE_ERROR;
    CK_RV code = theirs->C_CreateObject(session, template, count, object);
    objects += code == CKR_OK;
    return code;
}

static CK_RV destroy(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE object) {
    CK_RV code = theirs->C_DestroyObject(session, object);
    objects -= code == CKR_OK;
    return code;
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
        ours.C_EncryptInit = encrypt;
        ours.C_GetAttributeValue = read;
        ours.C_GenerateKeyPair = generate;
        ours.C_CreateObject = create;
        ours.C_DestroyObject = destroy;
        *list = &ours;
    }
    return code;
}
