// SPDX-License-Identifier: Apache-2.0
// A module with C_GetFunctionList and nothing else, in front of the module NEXT. OpenSC's spy 0.23 writes into the interface that
// C_GetInterface gives it, which is read-only in our module: programs that ask for interfaces are spied on so.

#include <dlfcn.h>
#include <stddef.h>

unsigned long C_GetFunctionList(void **list) {
    void *module = dlopen(NEXT, RTLD_NOW);
    unsigned long (*next)(void **) = NULL;
    if (module) *(void **)&next = dlsym(module, "C_GetFunctionList");
    return next ? next(list) : 5; // CKR_GENERAL_ERROR
}
