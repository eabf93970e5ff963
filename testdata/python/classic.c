// SPDX-License-Identifier: Apache-2.0
// A module with C_GetFunctionList and nothing else, before the one that METASLOT_SPY names. OpenSC's spy 0.23 writes into the
// interface that C_GetInterface gives it, which is read-only in our module: programs that ask for interfaces are spied on so.

#include <dlfcn.h>
#include <stdlib.h>

unsigned long C_GetFunctionList(void **list) {
    const char *path = getenv("METASLOT_SPY");
    void *spy = path ? dlopen(path, RTLD_NOW) : NULL;
    unsigned long (*next)(void **) = NULL;
    if (spy) *(void **)&next = dlsym(spy, "C_GetFunctionList");
    return next ? next(list) : 5; // CKR_GENERAL_ERROR
}
