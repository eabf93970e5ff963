/* SPDX-License-Identifier: Apache-2.0 */
/* What a module of the tests is told while it runs: by files in the directory FAKE_ORDERS. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <metaslot/pkcs11.h>

static inline void order_file(char *path, size_t room, const char *order)
{
    const char *home = getenv("FAKE_ORDERS");
    snprintf(path, room, "%s/%s", home ? home : "/nonexistent", order);
}

/* Whether there is such an order. */
__attribute__((unused)) static int ordered(const char *order)
{
    char path[4096];
    order_file(path, sizeof path, order);
    return access(path, F_OK) == 0;
}

/* How to fail, by the first letter of the file: CKR_OK without one. */
__attribute__((unused)) static CK_RV ordered_failure(const char *order)
{
    char path[4096];
    order_file(path, sizeof path, order);
    FILE *file = fopen(path, "r");
    if (!file)
        return CKR_OK;
    int how = fgetc(file);
    fclose(file);
    switch (how) {
    case 'r': return CKR_DEVICE_REMOVED;
    case 'p': return CKR_TOKEN_NOT_PRESENT;
    case 's': return CKR_SESSION_HANDLE_INVALID;
    case 'd': return CKR_DATA_LEN_RANGE;
    case 'o': return 0x80001234;
    default: return CKR_DEVICE_ERROR;
    }
}

/* Stays where it is, once, from when there is a file "stall-…" until the file "stalled-…", which it becomes, is taken away. */
__attribute__((unused)) static void stall(const char *order)
{
    char name[256], wanted[4096], done[4096];
    snprintf(name, sizeof name, "stall-%s", order);
    order_file(wanted, sizeof wanted, name);
    snprintf(name, sizeof name, "stalled-%s", order);
    order_file(done, sizeof done, name);
    for (int stalled = rename(wanted, done) == 0; stalled && access(done, F_OK) == 0;)
        usleep(1000);
}
